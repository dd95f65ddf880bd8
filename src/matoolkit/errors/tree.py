"""Every exception that people see, drawn as a tree; a test holds it to what there is.

MatoolkitError                MT500   something in the system itself is wrong
├── NaiveTime                 MT501   a time without zone reached code that needs an instant
├── TimeOutOfRange            MT502   a time in UTC lies outside the years 1 to 9999
├── Refused                   MT400   what was asked for cannot be done as asked
│   ├── InvalidSettings       ST400   the environment holds a setting that cannot be used
│   ├── UnreadableFile        IN404   a file cannot be read
│   ├── UnknownCode           RB404   no error and no finding has this code
│   ├── InvalidRunbook        RB400   a runbook has errors; carries its findings
│   ├── UnknownRunbook        PB404   no runbook has this name
│   ├── UnknownVersion        PB405   a runbook has no version of this number
│   ├── OtherName             PB422   a document has another name than the one it is published under
│   ├── PrimaryKeyChanged     PB409   a new version names another primary_key while batches are in flight
│   ├── PublishedMeanwhile    PB410   another person published the same runbook at the same moment
│   ├── VersionNotActive      PB411   only the active version can be deactivated
│   ├── NoActiveVersion       PB412   something needs the active version of a runbook that has none
│   ├── UnknownBatch          AD404   no batch has this number
│   ├── UnknownDeadLetter     AD405   no dead letter has this number
│   ├── UnknownMembers        AD406   a batch has no such members in the state that was asked for
│   ├── UnknownMember         AD407   a batch has no member of this number
│   ├── NoSuchPhase           AD418   a batch has no phase of this name
│   ├── UnknownRow            AD408   the last reading of the source has no usable row of this key
│   ├── InvalidMembers        AD400   rows for a manual batch cannot be used
│   ├── WrongBatchStatus      AD409   a batch is not in a state in which this can be done
│   ├── NotManual             AD410   the scheduler looks after this batch
│   ├── CannotAdvance         AD411   a batch cannot go on to another phase now
│   ├── NothingToRetry        AD412   there is no failure that could be retried
│   ├── StillRunning          AD413   a rollback or a job of the work to retry still runs
│   ├── HoldChanged           AD414   a batch is not held, or is now held for something else
│   ├── DeadLetterResolved    AD415   a dead letter was already resent or discarded
│   ├── HoldApproved          AD416   what a batch is held for is already approved
│   ├── NotIncluded           AD417   a member cannot be included in the batch of its time
│   ├── UnknownGate           GT404   no gate has this number
│   ├── NobodyToPause         GT405   nobody of this key is or was a member of a batch
│   ├── UnknownWorker         GT406   no worker of this id is known
│   ├── InvalidPause          GT400   what is to be paused, or until when, makes no sense
│   ├── InvalidFreeze         GT414   the times of a freeze make no sense
│   ├── NotAFreeze            GT415   a gate is no freeze
│   ├── NothingPaused         GT409   no pause of exactly this subject is shut
│   ├── GateOpened            GT410   a gate was opened before
│   ├── GateIsHold            GT411   a hold ends only by the approval of what it stands for
│   ├── GateShut              GT412   a gate keeps this from beginning
│   ├── NoBudget              GT413   only a budget can be opened for more failures
│   ├── UnknownBatchPhase     SO404   a batch has no phase of this number
│   ├── UnknownApproval       SO416   nothing of this name asks for a sign-off
│   ├── NotAmongSigners       SO403   the runbook names others who may sign off
│   ├── PublisherCannotSign   SO405   who published a version cannot approve it
│   ├── NobodySigned          SO406   an application signed in, and only people sign off
│   ├── UnnamedSigner         SO417   a token does not say with which name a person signs in
│   ├── NotAsShown            SO409   what would be signed off is not what was shown
│   ├── AlreadySigned         SO410   the same person has signed exactly this already
│   ├── AlreadyBegun          SO411   what is to be signed off has begun
│   ├── NothingToSign         SO412   nothing asks for a sign-off here
│   ├── TooEarlyToSign        SO413   sign-offs are not taken yet
│   ├── TooLateToSign         SO414   sign-offs are not taken any more
│   ├── NothingToWithdraw     SO415   the caller has given no sign-off that could be taken back
│   ├── NewerVersionWaits     AD420   a batch is about to take a newer version than the one that would run
│   ├── UnknownPhase          AD421   the version to run has no such phase
│   ├── DoneWithOldData       AD422   finished steps used old values of a changed column
│   ├── NotReadYet            AD423   the source has not been read yet, so there are no rows to take
│   ├── WrongDataChoice       AD424   rows of a file are for manual batches, rows of the source for the others
│   ├── NothingToUndo         AD430   nobody who was asked for can be undone now
│   ├── ExcludedAlready       AD431   a person has excluded this member already
│   ├── MemberChanged         AD432   a member joined another batch while a person decided about it
│   ├── InvalidRequest        AP422   a request does not have the right form
│   ├── UnknownRoute          AP404   nothing is served at an address
│   ├── WrongMethod           AP405   an address does not take a method
│   ├── BodyTooLarge          AP413   a body is larger than the limit of its kind
│   ├── WrongContentType      AP415   the route does not read a body of this type
│   ├── InvalidCursor         AP400   a cursor does not belong to this list
│   ├── KeyReused             AP409   an Idempotency-Key came again with another request
│   ├── ChangedSince          AP412   the state has changed since the caller read it
│   ├── NotSignedIn           AP401   a request has no token, or one that is not accepted here
│   │   └── SessionOver       WB401   nobody is signed in to the pages in this browser, or the session has ended
│   ├── RoleMissing           AP403   the caller does not have the role that this needs
│   ├── NotFromHere           AP421   without sign-in only the same machine is answered
│   ├── SignInRequired        AP411   the API would be served to others without sign-in
│   ├── EntryRefused          WB411   Entra did not let a person in to the pages
│   ├── EntryTooOld           WB412   a person came back from Entra without having been sent there
│   ├── PagesClosed           WB404   nothing says how people come to the pages
│   ├── FormTooOld            WB403   a form does not carry the mark of a page that was sent
│   ├── PreviewChanged        WB409   what would happen is no longer what was shown
│   ├── MissingAnswer         WB422   a form leaves out something that is needed
│   ├── AlreadyUp             HO409   `matoolkit up` already runs in this folder
│   ├── UnsafeFolder          HO403   other people can put files into a folder whose files a worker executes
│   ├── PortTaken             HO410   another program listens on a port
│   ├── OtherSpeed            HO411   the calendar of a database runs at another speed
│   ├── FastCalendar          HO412   a database with a fast calendar is for `matoolkit up` alone
│   ├── NotForTrying          HO422   a runbook cannot be tried on a file of rows
│   ├── TelemetryLibraryMissing HO502 the libraries that send telemetry are not installed
│   ├── SignInNeeded          CL401   nobody is signed in on this machine
│   ├── SignInFailed          CL403   signing in did not work
│   ├── ConfirmationNeeded    CL428   a confirmation is needed, and there is no terminal to ask on
│   ├── UnknownFailure        CL404   no step of the batch failed like this one
│   ├── UnknownPerson         CL405   nobody has this key, address or number
│   ├── AmbiguousPerson       CL409   a text names several people
│   ├── UnwritableFile        IN403   a file cannot be written
│   ├── BusLibraryMissing     BU502   the library for Azure Service Bus is not installed
│   ├── BusAddressInvalid     BU400   the connection string of the Service Bus cannot be used
│   ├── AnotherSchedulerWorks SH409   another scheduler works on the same database
│   ├── SourceNotConfigured   SC404   an environment variable that a runbook's source needs is not set
│   ├── InvalidDatabaseUrl    DB400   the address of the database cannot be used
│   ├── RolesNotSupported     DB405   this database has no users
│   ├── UnusableKey           DB422   a key is empty, too long, or has a character that cannot be stored
│   └── TooManyColumns        DB413   a query returns more columns than a table can have
├── TemplateError             TP400   a template cannot be resolved for a member
│   ├── UnresolvedVariable    TP404   nothing supplies the variable
│   ├── AmbiguousVariable     TP409   several names match it, and differ only in case
│   ├── NotText               TP422   null, a list or a mapping stands inside a longer text
│   ├── NotAFunctionName      TP423   a templated function resolved to something that is not a name
│   ├── SecretFromData        TP424   data names a secret, which only a runbook may do
│   └── FunctionNotAllowed    TP403   a templated function resolved to a name that is not allowed
├── NotApproved               SO420   a member joined a phase that had begun, and was not approved for it
├── ProblemOfServer           CL400   the admin API refused or failed; code and hint are its own
├── ServerUnreachable         CL503   nobody answers at the address of the admin API
├── ServerTooSlow             CL504   the admin API did not answer in time
├── UnreadableAnswer          CL502   an answer does not come from an admin API
├── SignInUnavailable         AP503   Entra's signing keys cannot be fetched
├── EntryBroken               WB500   Entra does not accept how the pages prove which application they are
├── EntryUnavailable          WB503   Entra does not answer those who want to sign in to the pages
├── UnreadableMessage         BU422   a message cannot be read
├── UnwritableMessage         BU414   a message cannot be written
├── MessageTooLarge           BU413   a message is larger than any bus would carry
├── MessageRefused            BU415   a message is not one that the bus takes
├── BusManagingRefused        BU403   the identity of this process may not manage the bus
├── WorkerHasNoSubscription   BU405   a job is for a worker that has no subscription on the bus
├── BusUnavailable            BU503   the bus cannot be reached
│   ├── BusSignInFailed       BU401   the identity of this process may not use the bus
│   ├── BusEntityMissing      BU404   a topic or a subscription does not exist
│   ├── BusEntityDisabled     BU423   a topic or a subscription is disabled
│   ├── BusBusy               BU429   the bus asks to wait
│   └── BusFull               BU507   a topic has no room left
├── SourceFailed              SC502   a source could not be queried
├── SpoolFailed               SC507   the rows of a source cannot be kept
├── MissingColumn             SC422   a query did not return a column that its runbook names
└── StoreError                DB500   the database refused a statement
    ├── RowConflict           DB409   a row breaks a rule of its table
    ├── StoreUnavailable      DB503   the database cannot be reached, or the connection broke
    ├── SignInRefused         DB401   the database does not let this process in
    ├── StoreBusy             DB504   another process holds what is needed, or a deadlock was broken
    ├── StoreFull             DB507   the database has no room left
    ├── StoreReadOnly         DB403   the database may only be read
    ├── StoreDamaged          DB508   the file is not a database, or it is damaged
    ├── DriverMissing         DB501   the driver for this database is not installed
    ├── UnknownServer         DB502   the server is something else than its address promises
    ├── ReadsNotStable        DB505   readers may not see one picture while others write
    ├── LeaseLost             DB410   another process has taken over the work
    └── WrongSchema           DB510   the tables do not fit this version of the program
        ├── SchemaMissing     DB511   there are no tables yet
        ├── SchemaTooOld      DB512   the tables are those of an older version
        ├── SchemaTooNew      DB513   the tables are those of a newer version
        └── SchemaDamaged     DB514   the tables are not what their version says
"""
