#!/usr/bin/env bash
# Guess:    a daily event at 02:30 meets the night in which the clocks go forward. RFC 5545 (3.3.5) says what to do: take
#           the offset from before the gap, so the event is at 03:30 in that night. Libraries for calendars do that.
# Reality:  five libraries give three answers. recurring-ical-events and rrule: 03:30. ical.js: 01:30, an hour too early.
#           rrule-temporal and node-ical, which uses it: the night is left out, and with COUNT=5 the series gets
#           a day more at its end, the 12th, so its last day differs, too.
#           In autumn, "every hour" has a hole of two hours in four of the five: ical.js leaves out the first 01:00 (05:00 UTC), the other
#           three its repetition (06:00 UTC), although nothing happens to UTC in that night. Only rrule has all six hours
#           in a row, and that is an accident (see rrule-wrong-hour-on-change-day.sh).
# Versions: rrule 2.8.1, rrule-temporal 2.2.8, node-ical 0.27.2, ical.js 2.2.1 (npm); recurring-ical-events 3.8.2 (PyPI).
# Why:      whether a nightly job ran, was late or was left out depends on the library which is asked, and a watcher of
#           "every hour" sees a silence that is none.
# Seen:     2026-11-29, the text at the end of this script. New York; "gap": local days and times in March 2026;
#           "autumn": the UTC times of six hourly events around 1 November 2026.
set -euo pipefail
. "$(dirname "$0")/common.sh"
npm_packages rrule@2.8.1 rrule-temporal@2.2.8 node-ical@0.27.2 ical.js@2.2.1
pip_packages recurring-ical-events==3.8.2

cat > "$WORK/cases.json" <<'END'
{"gap": "DTSTART;TZID=America/New_York:20260307T023000\nRRULE:FREQ=DAILY;COUNT=5",
 "autumn": "DTSTART;TZID=America/New_York:20261031T230000\nRRULE:FREQ=HOURLY;COUNT=6"}
END
new_york_calendar
cat > "$WORK/probe.mjs" <<'END'
import { readFileSync } from 'node:fs';
import rrule from 'rrule';
import nodeIcal from 'node-ical';
import ICAL from 'ical.js';
import { RRuleTemporal } from 'rrule-temporal';
const [head, tail] = JSON.parse(readFileSync('calendar.json', 'utf8'));
const local = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', day: 'numeric', hour: '2-digit', minute: '2-digit' });
for (const [name, text] of Object.entries(JSON.parse(readFileSync('cases.json', 'utf8')))) {
  const show = (library, dates) => console.log(`${name}: ${library}`,
    dates.map(date => name === 'gap' ? local.format(date).replace(', ', '/') : date.toISOString().slice(11, 16)).join(' '));
  show('rrule', rrule.rrulestr(text).all());
  show('rrule-temporal', new RRuleTemporal({ rruleString: text }).all().map(time => new Date(time.epochMilliseconds)));
  const calendar = (head + text + tail).replaceAll('\n', '\r\n');
  const event = Object.values(nodeIcal.sync.parseICS(calendar)).find(part => part.type === 'VEVENT');
  const [from, to] = [new Date('2026-01-01'), new Date('2027-01-01')];
  show('node-ical', nodeIcal.expandRecurringEvent(event, { from, to }).map(one => one.start));
  const component = new ICAL.Component(ICAL.parse(calendar));
  ICAL.TimezoneService.register(component.getFirstSubcomponent('vtimezone'));
  const all = new ICAL.Event(component.getFirstSubcomponent('vevent')).iterator();
  const list = [];
  for (let next; list.length < 9 && (next = all.next());) list.push(next.toJSDate());
  show('ical.js', list);
}
END
cat > "$WORK/events.py" <<'END'
import json, datetime, zoneinfo, icalendar, recurring_ical_events
head, tail = json.load(open("calendar.json"))
zone = zoneinfo.ZoneInfo("America/New_York")
for name, text in json.load(open("cases.json")).items():
    calendar = icalendar.Calendar.from_ical((head + text + tail).replace("\n", "\r\n"))
    times = sorted(event["DTSTART"].dt.astimezone(datetime.timezone.utc)
                   for event in recurring_ical_events.of(calendar).between((2026, 1, 1), (2027, 1, 1)))
    shown = [time.astimezone(zone).strftime("%-d/%H:%M") if name == "gap" else time.strftime("%H:%M") for time in times]
    print(f"{name}: recurring-ical-events", *shown)
END
probe node probe.mjs
probe "$PYTHON" events.py

expect "02:30 in the gap has three answers, and four of five libraries lose an hour in autumn" <<'END'
gap: rrule 7/02:30 8/03:30 9/02:30 10/02:30 11/02:30
gap: rrule-temporal 7/02:30 9/02:30 10/02:30 11/02:30 12/02:30
gap: node-ical 7/02:30 9/02:30 10/02:30 11/02:30 12/02:30
gap: ical.js 7/02:30 8/01:30 9/02:30 10/02:30 11/02:30
autumn: rrule 03:00 04:00 05:00 06:00 07:00 08:00
autumn: rrule-temporal 03:00 04:00 05:00 07:00 08:00 09:00
autumn: node-ical 03:00 04:00 05:00 07:00 08:00 09:00
autumn: ical.js 03:00 04:00 06:00 07:00 08:00 09:00
gap: recurring-ical-events 7/02:30 8/03:30 9/02:30 10/02:30 11/02:30
autumn: recurring-ical-events 03:00 04:00 05:00 07:00 08:00 09:00
END
