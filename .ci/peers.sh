#!/usr/bin/env bash
# Installs the real peers that test/peers talks to, from Debian's packages, as root: Postfix, BIND, Knot, rbldnsd, pebble,
# the mail clients and the tools beside them, and the languages of examples/; OpenSMTPD and Exim unpacked into a folder,
# since Debian's mail servers exclude one another; Haraka from npm into that folder. Prints that folder.
set -euo pipefail
peers=${SVC_PEERS_DIR:-/var/tmp/svc-peers}
wanted=(systemd zsh fish postfix postgrey swaks tmux libnet-ssleay-perl opendkim-tools libmail-dkim-perl python3-dkim python3-nacl openssl curl strace msmtp git git-email libmailtools-perl libauthen-sasl-perl libnet-smtp-ssl-perl libio-socket-ssl-perl python3 jq php-cli php-curl ruby golang-go chromium rbldnsd debootstrap bind9 bind9-utils knot knot-dnssecutils sasl2-bin libsasl2-modules python3-botocore golang-github-hashicorp-hcl-v2-dev pebble)
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ] || [ ! -x "$peers/opensmtpd/usr/sbin/smtpd" ] || [ ! -x "$peers/exim/usr/sbin/exim4" ]; then
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
# A fresh Debian, into which test/peers/deb.test.ts installs the package; made beside what follows.
debian() {
  [ ! -e "$peers/debian-root.tar" ] || return 0
  local root
  mkdir -p "$peers"
  root=$(mktemp -d "$peers/debian-XXXXXX")
  if ! debootstrap --variant=minbase --include=adduser,libatomic1 bookworm "$root" http://deb.debian.org/debian >"$root.log" 2>&1; then
    tail -20 "$root.log" >&2
    return 1
  fi
  tar -C "$root" --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*' -cf "$peers/debian-root.tar.new" .
  mv "$peers/debian-root.tar.new" "$peers/debian-root.tar"
  rm -rf "$root" "$root.log"
}
debian &
debian=$!
# Unpacks a package and the libraries that it names into a folder of its own.
unpack() {
  local package=$1 folder=$2 libraries
  mkdir -p "$peers/debs-$folder"
  libraries=$(apt-cache depends "$package" | sed -n 's/^  Depends: \(lib[a-z0-9.+-]*\)$/\1/p')
  (cd "$peers/debs-$folder" && apt-get download -qq "$package" $libraries >&2)
  for deb in "$peers/debs-$folder"/*.deb; do dpkg -x "$deb" "$peers/$folder"; done
}
[ -x "$peers/opensmtpd/usr/sbin/smtpd" ] || unpack opensmtpd opensmtpd
[ -x "$peers/exim/usr/sbin/exim4" ] || unpack exim4-daemon-light exim
bash "$(dirname "$0")/haraka.sh" "$peers/haraka" --omit=optional
# Cloudflare's own library, whose types say what its API takes; among no project's packages, for it is large.
cloudflare=7.3.0
if [ "$(node -p "require('$peers/cloudflare/node_modules/cloudflare/package.json').version" 2>/dev/null)" != "$cloudflare" ]; then
  npm install --prefix "$peers/cloudflare" --no-audit --no-fund --loglevel=error "cloudflare@$cloudflare" >&2
fi
# What the packages would have made. Exim: its user, and the place of its configuration, on which tests mount theirs.
mkdir -p /etc/exim4
getent passwd Debian-exim >/dev/null || useradd --system --no-create-home --home-dir /var/spool/exim4 --shell /usr/sbin/nologin Debian-exim
# OpenSMTPD: two users without a login, its empty root, its delivery agents where it looks for them.
for user in opensmtpd opensmtpq; do
  getent passwd "$user" >/dev/null || useradd --system --no-create-home --home-dir /var/lib/opensmtpd/empty --shell /usr/sbin/nologin "$user"
done
mkdir -p /var/lib/opensmtpd/empty /usr/libexec
[ -e /usr/libexec/opensmtpd ] || ln -s "$peers/opensmtpd/usr/libexec/opensmtpd" /usr/libexec/opensmtpd
wait "$debian"
echo "$peers"
