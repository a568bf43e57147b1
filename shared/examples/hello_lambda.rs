//! The least that a Lambda behind API Gateway can be: what a cold start of ours is compared with.

use lambda_http::{Body, Error, Request, Response, service_fn};

async fn hello(_: Request) -> Result<Response<Body>, Error> {
    Ok(Response::new("hello".into()))
}

fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(lambda_http::run(service_fn(hello)))
}
