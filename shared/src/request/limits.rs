//! Limits that several layers share.

/// The largest body of a request, in bytes. The limit is the same on AWS and locally.
///
/// Lambda accepts an event of 6 MiB (6,291,456 bytes). API Gateway encodes the body as base64, which makes it a third
/// larger, and adds headers and the request's context. A body of 4,400,000 bytes becomes 5,866,668 bytes and leaves
/// room for those. `infra/cli` has the same number as `MAX_PAYLOAD`.
pub const MAX_BODY_BYTES: usize = 4_400_000;

/// The longest `Idempotency-Key`, in characters.
pub const MAX_KEY: usize = 255;
