//! The smallest possible Lambda behind API Gateway. Our cold starts are compared with it.

use lambda_http::{Body, Error, Request, Response, service_fn};

async fn hello(_: Request) -> Result<Response<Body>, Error> {
    Ok(Response::new("hello".into()))
}

fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(lambda_http::run(service_fn(hello)))
}
