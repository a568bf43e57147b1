"""The README's walk-through, with a client that openapi-python-client generates from the document.

python job.py URL FOLDER, where FOLDER has the generated package `lamplighter_client`.
The program ends with an error if anything is wrong.
"""

import sys
import time
import uuid
from datetime import UTC, datetime, timedelta

URL, FOLDER = sys.argv[1:]
sys.path.insert(0, FOLDER)

from lamplighter_client import Client  # noqa: E402
from lamplighter_client.api.actions import (  # noqa: E402
    approve_action,
    change_action,
    define_action,
    explain_action,
    list_action_run_outputs,
    list_action_runs,
    post_action_message,
    read_action,
    schedule_action,
)
from lamplighter_client.api.agents import create_agent, read_agent, set_up_agent  # noqa: E402
from lamplighter_client.api.assets import read_asset_content, save_asset  # noqa: E402
from lamplighter_client.api.chats import talk_to_agent  # noqa: E402
from lamplighter_client.models import (  # noqa: E402
    ActionPatch,
    ApproveAction,
    DefineAction,
    NewActionMessage,
    NewAgent,
    NewSchedule,
    Problem,
    SaveAsset,
    Schedule,
    TurnInput,
)

client = Client(base_url=URL, headers={"Accept": "application/json"}, raise_on_unexpected_status=True)


def done(answer):
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer}")
    return answer


# Set an agent up by talking.
setup = done(set_up_agent.sync(client=client, body=TurnInput(message="I want to follow my market")))
chat_id = setup.chat_id
for message in ["A research agent that reports on three competitors", "One page that names every price change", "Ongoing"]:
    setup = done(set_up_agent.sync(client=client, body=TurnInput(chat_id=chat_id, message=message)))
agent = done(create_agent.sync(client=client, body=NewAgent.from_dict(setup.agent_draft.to_dict())))

# Ask for something now, and save it.
asked = done(talk_to_agent.sync(agent.agent_id, client=client, body=TurnInput(message="Write a brief about lamp oil prices")))
proposal = SaveAsset(proposal_id=asked.proposals[0].proposal_id)
asset = done(save_asset.sync(agent.agent_id, client=client, body=proposal, idempotency_key=str(uuid.uuid4())))
content = read_asset_content.sync_detailed(asset.asset_id, client=client)
assert content.status_code == 200 and "lamp oil" in content.content.decode(), content

# Ask for something later, approve it, and set its time.
planned = done(talk_to_agent.sync(agent.agent_id, client=client, body=TurnInput(message="Schedule a report on lamp oil prices")))
action = done(define_action.sync(agent.agent_id, client=client, body=DefineAction(proposal_id=planned.proposals[0].proposal_id)))
done(approve_action.sync(action.action_id, client=client, body=ApproveAction(approval_hash=action.approval_hash)))
at = (datetime.now(UTC) + timedelta(seconds=61)).replace(microsecond=0)
schedule = NewSchedule(schedule=Schedule(at=at.isoformat()))
action = done(schedule_action.sync(action.action_id, client=client, body=schedule))
assert action.state == "scheduled", action.state

# Read what it made.
while (state := done(read_action.sync(action.action_id, client=client)).state) != "completed":
    assert state in ("scheduled", "in_progress"), state
    time.sleep(0.25)
run = done(list_action_runs.sync(action.action_id, client=client, limit=10)).data[0]
outputs = done(list_action_run_outputs.sync(action.action_id, run.run_id, client=client))
assert outputs.data, outputs

# Ask why, and talk about it.
why = done(explain_action.sync(action.action_id, client=client, at=at))
assert why.code == "ran", why
question = NewActionMessage(content="What happened in the last run?")
print(done(post_action_message.sync(action.action_id, client=client, body=question)).message)
wish = done(post_action_message.sync(action.action_id, client=client, body=NewActionMessage(content="Name the sources, too")))
change = ActionPatch(proposal_id=wish.proposals[0].proposal_id)
changed = done(change_action.sync(action.action_id, client=client, body=change))
assert "Name the sources, too" in changed.task_config.instructions, changed

# An error is a problem document of the type in the OpenAPI document.
lost = read_agent.sync("agt_" + "0" * 32, client=client)
assert isinstance(lost, Problem) and lost.code == "not_found", lost
print("the main job is done")
