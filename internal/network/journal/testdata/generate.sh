#!/usr/bin/env bash
# Writes journal files with the lines of internal/network/boot/testdata/al2023.journal.txt, by
# systemd's own writer (Debian: systemd-journal-remote, whose path is $REMOTE): in the
# compact format, which is systemd's own choice since 252, and in the one before, without
# compression.
set -euo pipefail
cd "$(dirname "$0")"
export=$(mktemp)
trap 'rm -f "$export" ./*.journal' EXIT
python3 - > "$export" <<'PY'
import re, sys, datetime
out = sys.stdout.buffer
n = 0
def entry(at, identifier, message):
    global n
    n += 1
    micros = int(at.timestamp() * 1000000 + 0.5)
    fields = [b"__REALTIME_TIMESTAMP=%d" % micros, b"__MONOTONIC_TIMESTAMP=%d" % (n * 1000000), b"_BOOT_ID=" + b"0123456789abcdef" * 2]
    fields += [b"PRIORITY=6", b"_MACHINE_ID=" + b"fedcba9876543210" * 2, b"_SOURCE_MONOTONIC_TIMESTAMP=%d" % n]
    fields += [b"SYSLOG_IDENTIFIER=" + identifier.encode(), b"MESSAGE=" + message.encode()]
    out.write(b"\n".join(fields) + b"\n\n")
for i, line in enumerate(open("../../boot/testdata/al2023.journal.txt")):
    stamp, host, rest = line.rstrip("\n").split(" ", 2)
    at = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z")
    identifier, message = rest.split(": ", 1)
    entry(at, re.sub(r"\[.*", "", identifier), message)
    if i == 3:
        entry(at, "nodeadm", "long " * 400)
        entry(at, "nodeadm", "longer " * 4000)
PY
write() {
  rm -f "$1.journal"
  SYSTEMD_JOURNAL_COMPACT=$2 "${REMOTE:-/lib/systemd/systemd-journal-remote}" --compress="$3" -o "$PWD/$1.journal" "$export" 2>/dev/null
  gzip -9nc "$1.journal" > "$1.journal.gz"
}
write compact 1 yes
write regular 0 no
