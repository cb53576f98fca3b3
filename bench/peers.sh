#!/usr/bin/env bash
# Installs what svc is measured against and with, as root: Postfix with Cyrus SASL, OpenDKIM (none set up nor started),
# gcc, OpenSSL's library and perf from Debian, Haraka from npm into a folder outside of the repository. Haraka runs on the Node.js 26 that runs
# the bench. Prints the folder.
set -euo pipefail
folder=${SVC_BENCH_DIR:-/var/tmp/svc-bench}
wanted=(postfix sasl2-bin libsasl2-modules opendkim openssl gcc libc6-dev libssl-dev linux-perf)
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  # Packages start no services of their own here.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  apt-get update -qq >&2
  echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
bash "$(dirname "$0")/../.ci/haraka.sh" "$folder/haraka"
echo "$folder"
