#!/usr/bin/env bash
# Installs the real peers that test/peers talks to, from Debian's packages, as root: Postfix and the tools
# beside it; OpenSMTPD unpacked into a folder, since Debian's mail servers exclude one another. Prints that folder.
set -euo pipefail
peers=${SVC_PEERS_DIR:-/var/tmp/svc-peers}
wanted=(postfix swaks libnet-ssleay-perl opendkim-tools openssl curl strace)
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ] || [ ! -x "$peers/opensmtpd/usr/sbin/smtpd" ]; then
  apt-get update -qq >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
  # Packages start no services of their own here.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ ! -x "$peers/opensmtpd/usr/sbin/smtpd" ]; then
  mkdir -p "$peers/debs"
  libraries=$(apt-cache depends opensmtpd | sed -n 's/^  Depends: \(lib[a-z0-9.+-]*\)$/\1/p')
  (cd "$peers/debs" && apt-get download -qq opensmtpd $libraries >&2)
  for deb in "$peers"/debs/*.deb; do dpkg -x "$deb" "$peers/opensmtpd"; done
fi
# What its package would have made: two users without a login, its empty root, its delivery agents where it looks for them.
for user in opensmtpd opensmtpq; do
  getent passwd "$user" >/dev/null || useradd --system --no-create-home --home-dir /var/lib/opensmtpd/empty --shell /usr/sbin/nologin "$user"
done
mkdir -p /var/lib/opensmtpd/empty /usr/libexec
[ -e /usr/libexec/opensmtpd ] || ln -s "$peers/opensmtpd/usr/libexec/opensmtpd" /usr/libexec/opensmtpd
echo "$peers"
