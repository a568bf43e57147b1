# The platform on one machine, with the `lamplighter` command. docs/operations.md says how to run it.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package lamplighter-local --package lamplighter-cli

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --uid 10001 lamplighter \
    && install --directory --owner lamplighter --mode 700 /data
COPY --from=build /src/target/release/lamplighter-local /src/target/release/lamplighter /usr/local/bin/
USER lamplighter
# Others can reach the port of a container, so every call needs a key. The server refuses to start without LAMPLIGHTER_AUTH=on here.
ENV LAMPLIGHTER_DATA=/data LAMPLIGHTER_HOST=0.0.0.0 LAMPLIGHTER_PORT=9000 LAMPLIGHTER_AUTH=on
VOLUME /data
EXPOSE 9000
HEALTHCHECK CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:9000/health"]
ENTRYPOINT ["lamplighter-local"]
