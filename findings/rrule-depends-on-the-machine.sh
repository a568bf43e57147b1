#!/usr/bin/env bash
# Guess:    a rule with `DTSTART;TZID=America/New_York` names instants. It gives the same instants on every machine.
# Reality:  with rrule (npm) they depend on the zone of the *process*. With TZ=UTC the Dates are the right instants. Elsewhere
#           they are shifted by the difference to the process's zone, so that their local digits are those of New York's time in
#           local time. `between` and `after` take the bounds in the same shifted form, so a scheduler that asks
#           "what is due in this hour" with real instants gets nothing, and `after` skips an event.
# Others:   rrule-temporal gives the same instants everywhere.
# Versions: rrule 2.8.1, rrule-temporal 2.2.8 (npm).
# Why:      a server in UTC is right, a laptop is wrong, and so is a test that mixes both; a change of the container's TZ moves
#           all appointments.
# Seen:     2026-11-29, the text at the end of this script. The event is at 20:00 on Thursdays in New York,
#           which is 01:00 UTC on Fridays.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages rrule@2.8.1 rrule-temporal@2.2.8

cat > "$WORK/probe.mjs" <<'END'
import rrule from 'rrule';
import { RRuleTemporal } from 'rrule-temporal';
const text = 'DTSTART;TZID=America/New_York:20261105T200000\nRRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=3';
const rule = rrule.rrulestr(text);
const [from, to] = [new Date('2026-11-06T00:30:00Z'), new Date('2026-11-06T02:00:00Z')];
const minutes = date => date.toISOString().slice(0, 16) + 'Z';
console.log(process.env.TZ, 'rrule, first:', minutes(rule.all()[0]));
console.log(process.env.TZ, 'rrule, between 00:30Z and 02:00Z on the 6th:', rule.between(from, to).map(minutes).join() || 'none');
console.log(process.env.TZ, 'rrule, after 00:30Z on the 6th:', minutes(rule.after(from)));
console.log(process.env.TZ, 'rrule-temporal, first:', new RRuleTemporal({ rruleString: text }).all()[0].toInstant().toString());
END
for zone in UTC America/Los_Angeles Asia/Tokyo; do
    TZ=$zone probe node probe.mjs
done

expect "rrule's instants depend on the zone of the process" <<'END'
UTC rrule, first: 2026-11-06T01:00Z
UTC rrule, between 00:30Z and 02:00Z on the 6th: 2026-11-06T01:00Z
UTC rrule, after 00:30Z on the 6th: 2026-11-06T01:00Z
UTC rrule-temporal, first: 2026-11-06T01:00:00Z
America/Los_Angeles rrule, first: 2026-11-05T17:00Z
America/Los_Angeles rrule, between 00:30Z and 02:00Z on the 6th: none
America/Los_Angeles rrule, after 00:30Z on the 6th: 2026-11-12T17:00Z
America/Los_Angeles rrule-temporal, first: 2026-11-06T01:00:00Z
Asia/Tokyo rrule, first: 2026-11-06T10:00Z
Asia/Tokyo rrule, between 00:30Z and 02:00Z on the 6th: none
Asia/Tokyo rrule, after 00:30Z on the 6th: 2026-11-06T10:00Z
Asia/Tokyo rrule-temporal, first: 2026-11-06T01:00:00Z
END
