# An image of svc: docker build -t svc-mail . (docs/install.md says how it is run). The first stage builds the program, the
# second holds it as the Debian package lays it out: the bundle, its database library, and a Node.js of its own.
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libatomic1 libstdc++6 \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 990 --user-group --home-dir /var/lib/svc --shell /usr/sbin/nologin svc \
 && install -d -o svc -g svc -m 0700 /var/lib/svc /var/backups/svc \
 && install -d -o svc -g svc -m 0755 /etc/svc /run/svc \
 && ln -s ../lib/svc-mail/bin/svc /usr/bin/svc
COPY --from=build /src/package.json /usr/lib/svc-mail/
COPY --from=build /src/bin/svc /usr/lib/svc-mail/bin/svc
COPY --from=build /src/dist /usr/lib/svc-mail/dist
COPY --from=build /src/examples /usr/lib/svc-mail/examples
COPY --from=build /src/systemd /usr/lib/svc-mail/systemd
COPY --from=build /src/node_modules /usr/lib/svc-mail/node_modules
USER svc
# As a unit of systemd has it: configuration in /etc/svc, data in /var/lib/svc, the admin socket in /run/svc.
ENV STATE_DIRECTORY=/var/lib/svc RUNTIME_DIRECTORY=/run/svc
VOLUME ["/etc/svc", "/var/lib/svc", "/var/backups/svc"]
EXPOSE 443 587 2525 465 25
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["svc", "healthcheck", "--live"]
ENTRYPOINT ["svc"]
CMD ["serve"]
