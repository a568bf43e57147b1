#!/usr/bin/env bash
# Guess:    an event of 09:00 in New York with `EXDATE:20261104T140000Z` does not take place on 4 November: 14:00 UTC is
#           that very instant. And `UNTIL=20261105T100000Z`, four hours before the event of the 5th, ends the series on the 4th.
# Reality:  rrule (the npm package) compares the digits of the clock, not instants. The exception is ignored, and the series has
#           one event too many; only an EXDATE with the same TZID works. `UNTIL` is compared with the local time as if
#           it were local, too, although RFC 5545 wants it in UTC when the start has a zone. No error.
#           Two more traps in the same place: node-ical's `event.rrule.all()` knows no exceptions at all (use
#           `expandRecurringEvent`), and rrule-temporal ignores `EXDATE;VALUE=DATE`, which the others take for the whole day.
# Others:   python-dateutil, recurring-ical-events and ical.js (with the VTIMEZONE registered) agree with the guess.
# Versions: rrule 2.8.1, rrule-temporal 2.2.8, node-ical 0.27.2, ical.js 2.2.1 (npm); python-dateutil 4.0.0,
#           recurring-ical-events 3.8.2 (PyPI).
# Why:      a cancelled appointment runs all the same. Programs that store instants write exceptions in UTC.
# Seen:     2026-11-29, the text at the end of this script: the days of November 2026 on which the event takes place.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages rrule@2.8.1 rrule-temporal@2.2.8 node-ical@0.27.2 ical.js@2.2.1
pip_packages python-dateutil==4.0.0
[ -x "$WORK/venv2/bin/python" ] || timeout 120 python3 -m venv "$WORK/venv2"
timeout 300 "$WORK/venv2/bin/pip" install --quiet --disable-pip-version-check recurring-ical-events==3.8.2

cat > "$WORK/cases.json" <<'END'
{"exception in UTC": "RRULE:FREQ=DAILY;COUNT=4\nEXDATE:20261104T140000Z",
 "exception in the zone": "RRULE:FREQ=DAILY;COUNT=4\nEXDATE;TZID=America/New_York:20261104T090000",
 "exception as a day": "RRULE:FREQ=DAILY;COUNT=4\nEXDATE;VALUE=DATE:20261104",
 "end at 10:00 UTC": "RRULE:FREQ=DAILY;UNTIL=20261105T100000Z"}
END
new_york_calendar
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import rrule from 'rrule';
import nodeIcal from 'node-ical';
import ICAL from 'ical.js';
import { RRuleTemporal } from 'rrule-temporal';
const [head, tail] = JSON.parse(readFileSync('calendar.json', 'utf8'));
const days = list => list.map(date => date.getUTCDate()).join(' ');
for (const [name, rule] of Object.entries(JSON.parse(readFileSync('cases.json', 'utf8')))) {
  const text = 'DTSTART;TZID=America/New_York:20261103T090000\n' + rule;
  const show = (library, run) => {
    let answer;
    try { answer = run(); } catch (error) { answer = 'error: ' + error.message; }
    console.log(`${name}: ${library} ${answer}`);
  };
  show('rrule', () => days(rrule.rrulestr(text).all()));
  show('rrule-temporal', () => new RRuleTemporal({ rruleString: text }).all().map(time => time.day).join(' '));
  const calendar = (head + text + tail).replaceAll('\n', '\r\n');
  const event = Object.values(nodeIcal.sync.parseICS(calendar)).find(part => part.type === 'VEVENT');
  show('node-ical, rrule.all()', () => days(event.rrule.all()));
  const [from, to] = [new Date('2026-11-01'), new Date('2026-12-01')];
  show('node-ical, expandRecurringEvent', () => days(nodeIcal.expandRecurringEvent(event, { from, to }).map(one => one.start)));
  show('ical.js', () => {
    const component = new ICAL.Component(ICAL.parse(calendar));
    ICAL.TimezoneService.register(component.getFirstSubcomponent('vtimezone'));
    const all = new ICAL.Event(component.getFirstSubcomponent('vevent')).iterator();
    const list = [];
    for (let next; list.length < 9 && (next = all.next());) list.push(next.toJSDate());
    return days(list);
  });
}
END
cat > "$WORK/rules.py" <<'END'
import json
from dateutil.rrule import rrulestr
for name, rule in json.load(open("cases.json")).items():
    try:
        found = rrulestr("DTSTART;TZID=America/New_York:20261103T090000\n" + rule)
        print(f"{name}: python-dateutil", *[time.day for time in found])
    except Exception as error:
        print(f"{name}: python-dateutil error: {error}")
END
cat > "$WORK/events.py" <<'END'
import json, icalendar, recurring_ical_events
head, tail = json.load(open("calendar.json"))
for name, rule in json.load(open("cases.json")).items():
    text = head + "DTSTART;TZID=America/New_York:20261103T090000\n" + rule + tail
    events = recurring_ical_events.of(icalendar.Calendar.from_ical(text.replace("\n", "\r\n"))).between((2026, 11, 1), (2026, 12, 1))
    print(f"{name}: recurring-ical-events", *sorted(event["DTSTART"].dt.day for event in events))
END
probe node probe.mjs
probe "$PYTHON" rules.py
probe "$WORK/venv2/bin/python" events.py

expect "rrule ignores exceptions in UTC and reads UNTIL as local time" <<'END'
exception in UTC: rrule 3 4 5 6
exception in UTC: rrule-temporal 3 5 6
exception in UTC: node-ical, rrule.all() 3 4 5 6
exception in UTC: node-ical, expandRecurringEvent 3 5 6
exception in UTC: ical.js 3 5 6
exception in the zone: rrule 3 5 6
exception in the zone: rrule-temporal 3 5 6
exception in the zone: node-ical, rrule.all() 3 4 5 6
exception in the zone: node-ical, expandRecurringEvent 3 5 6
exception in the zone: ical.js 3 5 6
exception as a day: rrule 3 4 5 6
exception as a day: rrule-temporal 3 4 5 6
exception as a day: node-ical, rrule.all() 3 4 5 6
exception as a day: node-ical, expandRecurringEvent 3 5 6
exception as a day: ical.js 3 5 6
end at 10:00 UTC: rrule 3 4 5
end at 10:00 UTC: rrule-temporal 3 4
end at 10:00 UTC: node-ical, rrule.all() 3 4
end at 10:00 UTC: node-ical, expandRecurringEvent 3 4
end at 10:00 UTC: ical.js 3 4
exception in UTC: python-dateutil 3 5 6
exception in the zone: python-dateutil 3 5 6
exception as a day: python-dateutil error: can't compare offset-naive and offset-aware datetimes
end at 10:00 UTC: python-dateutil 3 4
exception in UTC: recurring-ical-events 3 5 6
exception in the zone: recurring-ical-events 3 5 6
exception as a day: recurring-ical-events 3 5 6
end at 10:00 UTC: recurring-ical-events 3 4
END
