#!/usr/bin/env bash
# Guess:    only times that the change of clocks skips or repeats are delicate. An event at 08:00 in Los Angeles is at 08:00
#           on every day of the year.
# Reality:  rrule (npm) puts it at 07:00 on 1 November 2026. The library looks up the zone's offset at the digits of the local time
#           *read as UTC*, so around each change there is a window as long as the zone's distance from UTC in which every event is an hour
#           off: eight hours in Los Angeles, up to six in New York, one or two in Berlin; east of UTC the hours *before* the change,
#           as in Sydney the evening before. The process runs in UTC here, where rrule is at its best.
# Others:   rrule-temporal is right in all of them.
# Versions: rrule 2.8.1, rrule-temporal 2.2.8 (npm).
# Why:      twice a year the morning's job is an hour early or late, in America of all places in working hours, on one day; the log of
#           the day after shows nothing.
# Seen:     2026-11-29, the text at the end of this script. All these local times exist exactly once.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages rrule@2.8.1 rrule-temporal@2.2.8

cat > "$WORK/probe.mjs" <<'END'
import rrule from 'rrule';
import { RRuleTemporal } from 'rrule-temporal';
const cases = [
  ['America/Los_Angeles', '20261031T080000'], ['America/Los_Angeles', '20261101T080000'],
  ['America/Los_Angeles', '20261101T100000'], ['America/New_York', '20261101T050000'],
  ['America/New_York', '20260308T053000'], ['Europe/Berlin', '20260329T010000'],
  ['Europe/Berlin', '20260329T040000'], ['Australia/Sydney', '20261003T200000'],
];
for (const [zone, start] of cases) {
  const text = `DTSTART;TZID=${zone}:${start}\nRRULE:FREQ=DAILY;COUNT=1`;
  const local = date => date.toLocaleTimeString('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' });
  const first = rrule.rrulestr(text).all()[0];
  const other = new Date(new RRuleTemporal({ rruleString: text }).all()[0].epochMilliseconds);
  const asked = start.slice(9, 11) + ':' + start.slice(11, 13);
  console.log(`${zone} ${start.slice(0, 8)}, asked for ${asked}: rrule ${local(first)}, rrule-temporal ${local(other)}`);
}
END
probe node probe.mjs

expect "rrule is an hour off for hours around each change of clocks" <<'END'
America/Los_Angeles 20261031, asked for 08:00: rrule 08:00, rrule-temporal 08:00
America/Los_Angeles 20261101, asked for 08:00: rrule 07:00, rrule-temporal 08:00
America/Los_Angeles 20261101, asked for 10:00: rrule 10:00, rrule-temporal 10:00
America/New_York 20261101, asked for 05:00: rrule 04:00, rrule-temporal 05:00
America/New_York 20260308, asked for 05:30: rrule 06:30, rrule-temporal 05:30
Europe/Berlin 20260329, asked for 01:00: rrule 00:00, rrule-temporal 01:00
Europe/Berlin 20260329, asked for 04:00: rrule 04:00, rrule-temporal 04:00
Australia/Sydney 20261003, asked for 20:00: rrule 19:00, rrule-temporal 20:00
END
