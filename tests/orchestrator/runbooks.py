"""Runbooks that several plays use; only what matters is written."""

ONE_STEP = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: create, worker_id: worker-01, function: Create, params: {Email: '{{Email}}'}}
"""

TWO_STEPS = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: Create
        params: {Email: '{{Email}}'}
        output_params: {UserId: Id}
      - {name: license, worker_id: worker-01, function: License, params: {User: '{{UserId}}'}}
"""

TWO_PHASES = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: create, worker_id: worker-01, function: Create, params: {Email: '{{Email}}'}}
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}}
      - {name: finish, worker_id: worker-01, function: Finish, params: {Email: '{{Email}}'}}
  - name: check
    offset: T-0
    steps:
      - {name: test, worker_id: worker-01, function: Test, params: {Email: '{{Email}}'}}
"""

WITH_INIT = """
init:
  - {name: domain, worker_id: worker-01, function: Domain, params: {Batch: '{{_batch_id}}'}, on_failure: close}
  - {name: group, worker_id: worker-01, function: Group}
rollbacks:
  close:
    - {name: undomain, worker_id: worker-01, function: Undomain}
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: create, worker_id: worker-01, function: Create, params: {Email: '{{Email}}'}}
"""

WITH_ROLLBACK = """
on_member_removed:
  - {name: forget, worker_id: worker-01, function: Forget, params: {Email: '{{Email}}'}}
  - {name: tell, worker_id: worker-01, function: Tell, params: {Email: '{{Email}}'}}
rollbacks:
  undo:
    - {name: unlicense, worker_id: worker-01, function: Unlicense, params: {Email: '{{Email}}', User: '{{UserId}}'}}
    - {name: delete, worker_id: worker-01, function: Delete, params: {Email: '{{Email}}'}}
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: Create
        params: {Email: '{{Email}}'}
        output_params: {UserId: Id}
      - {name: license, worker_id: worker-01, function: License, params: {User: '{{UserId}}'}, on_failure: undo}
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}, on_failure: undo}
"""

WITH_RETRY = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: Create
        params: {Email: '{{Email}}'}
        retry: {max_retries: 2, interval: 10m}
"""

WITH_POLL = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: Create
        params: {Email: '{{Email}}'}
        output_params: {UserId: Id}
        poll: {interval: 1m, timeout: 1h}
        retry: {max_retries: 1, interval: 1m}
      - {name: license, worker_id: worker-01, function: License}
"""

WITH_FAREWELL = (
    """
on_member_removed:
  - {name: forget, worker_id: worker-01, function: Forget, params: {Email: '{{Email}}'}}
"""
    + TWO_PHASES
)
