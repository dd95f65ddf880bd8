"""What the extraction reads out of a generated client and out of a cmdlet's page, on small ones made for it."""

from pathlib import Path
from zipfile import ZipFile

from tests.calls.cmdlets import parameters, properties
from tests.calls.wheels import GraphWheel, databricks

BUILDER = """
if TYPE_CHECKING:
    from ...models.person import Person

class PersonItemRequestBuilder(BaseRequestBuilder):
    def __init__(self) -> None:
        super().__init__(request_adapter, "{+baseurl}/persons/{person%2Did}{?%24select}", path_parameters)

    async def get(self) -> Optional[Person]:
        from ...models.person import Person
        return await self.request_adapter.send_async(request_info, Person, error_mapping)

    async def patch(self, body: Person) -> None:
        return await self.request_adapter.send_no_response_content_async(request_info, error_mapping)
"""
PERSON = """
from .entity import Entity

class Person(Entity, Parsable):
    def get_field_deserializers(self):
        from .mood import Mood
        from .photo import Photo
        from .address import Address
        fields = {
            "names": lambda n : setattr(self, 'names', n.get_collection_of_primitive_values(str)),
            "mood": lambda n : setattr(self, 'mood', n.get_enum_value(Mood)),
            "photo": lambda n : setattr(self, 'photo', n.get_object_value(Photo)),
            "home": lambda n : setattr(self, 'home', n.get_object_value(Address)),
        }
        return fields
"""
FIELDS = """
class {name}(Parsable):
    def get_field_deserializers(self):
        fields = {{"{field}": lambda n : setattr(self, 'x', n.{getter}()), "@odata.type": lambda n : n.get_str_value()}}
        return fields
"""
SQL = """
class Format(Enum):
    CSV = "CSV"

@dataclass
class Reply:
    rows: Optional[List[int]] = None
    format: Optional[Format] = None

class StatementExecutionAPI:
    def ask(self, words: str, *, format: Optional[Format] = None) -> Reply:
        res = self._api.do("POST", "/api/ask", body=body, headers=headers)
    def look(self, ask_id: str) -> Reply:
        res = self._api.do("GET", f"/api/ask/{ask_id}", headers=headers)
"""
PAGE = """
### -Identity

> Applicable: Exchange Server 2019, Exchange Online

```yaml
Type: ThingIdParameter
Parameter Sets: (All)
Required: True
```

### -Old

> Applicable: Exchange Server 2019

```yaml
Type: String
Parameter Sets: Four
Required: True
```

### -Force

> Applicable: Exchange Online

```yaml
Type: SwitchParameter
Parameter Sets: One, Two, Four
Required: False
```

```yaml
Type: SwitchParameter
Parameter Sets: Three
Required: True
```
"""


def test_calls_types_and_options_are_read_from_a_generated_client(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "sdk.whl", "w") as wheel:
        wheel.writestr("sdk/generated/persons/item/person_item_request_builder.py", BUILDER)
        wheel.writestr("sdk/generated/models/person.py", PERSON)
        wheel.writestr(
            "sdk/generated/models/entity.py", FIELDS.format(name="Entity", field="id", getter="get_str_value")
        )
        wheel.writestr(
            "sdk/generated/models/address.py", FIELDS.format(name="Address", field="no", getter="get_int_value")
        )
        wheel.writestr("sdk/generated/models/mood.py", 'class Mood(str, Enum):\n    Good = "good",\n    Bad = "bad",\n')
    read = GraphWheel(tmp_path / "sdk.whl", "v1.0", frozenset({"Address"}))
    assert dict(read.calls({"/persons/{}": ("GET", "PATCH")})) == {
        "GET /v1.0/persons/{person-id}": {"query": ["$select"], "answer": "Person"},
        "PATCH /v1.0/persons/{person-id}": {"body": "Person"},
    }
    assert read.types == {
        "Person": {"id": "String", "names": "[String]", "mood": "Mood", "home": "Address"},
        "Address": {"no": "Int"},
    }
    assert read.enums == {"Mood": ["good", "bad"]}


def test_databricks_calls_are_read_from_its_client(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "sdk.whl", "w") as wheel:
        wheel.writestr("databricks/sdk/service/sql.py", SQL)
    assert databricks(tmp_path / "sdk.whl", ("ask", "look")) == {
        "calls": {
            "POST /api/ask": {"body": "ask body", "answer": "Reply"},
            "GET /api/ask/{ask_id}": {"answer": "Reply"},
        },
        "types": {"ask body": {"words": "String", "format": "Format"}, "Reply": {"rows": "[Int]", "format": "Format"}},
        "enums": {"Format": ["CSV"]},
    }


def test_parameters_that_a_cmdlet_has_online_are_read_from_its_page(tmp_path: Path) -> None:
    (tmp_path / "Set-Thing.md").write_text(PAGE, encoding="utf-8")
    assert parameters(tmp_path / "Set-Thing.md") == {
        "Identity": {"type": "ThingIdParameter", "sets": {"*": True}},
        "Force": {"type": "SwitchParameter", "sets": {"One": False, "Two": False, "Three": True}},
    }


def test_properties_are_read_from_the_lists_of_filters_and_property_sets(tmp_path: Path) -> None:
    online = "- ![Supported](x.png) Exchange Online"
    alias = f"## Alias\n\n{online}\n\n|_x_|**Get-Thing** <br/> **Get-Other**|y|\n"
    filters = f"{alias}\n## Mark1 to Mark2\n\n{online}\n|**Get-Thing**|\n"
    (tmp_path / "filter-properties.md").write_text(f"{filters}\n## Old\n\n|_x_|**Get-Thing**|y|\n", encoding="utf-8")
    sets = "## Get-EXOThing property sets\n\n|**Minimum**|Guid <br> Size|\n"
    (tmp_path / "cmdlet-property-sets.md").write_text(sets, encoding="utf-8")
    assert properties(tmp_path, ["Get-Thing"]) == {"Get-Thing": {"Alias", "Mark1", "Mark2", "Guid", "Size"}}
