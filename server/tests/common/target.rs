//! A service that takes replays: it counts requests and carries each out, as the real one would.

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use db::{Db, Query};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;

pub struct Target {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
}

impl Target {
    pub async fn start(db: Db) -> Self {
        let requests = Arc::new(AtomicU32::new(0));
        let shop = Shop { db, requests: Arc::clone(&requests) };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let app = Router::new().route("/api/orders", post(order)).with_state(shop);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}/api/orders", self.address)
    }

    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
struct Shop {
    db: Db,
    requests: Arc<AtomicU32>,
}

async fn order(State(shop): State<Shop>, headers: HeaderMap) -> &'static str {
    shop.requests.fetch_add(1, Ordering::SeqCst);
    let key = headers["idempotency-key"].to_str().expect("a plain key").to_owned();
    let statements = [
        "INSERT INTO t_order VALUES (?, '128.00', 'PAID')",
        "UPDATE idempotent_record SET status = 'SUCCESS', response_body = '{\"code\":0}' \
         WHERE idempotent_id = ? AND status = 'TIMEOUT'",
    ];
    for sql in statements {
        shop.db.execute(&Query::raw(sql, vec![key.as_str().into()])).await.expect("the order");
    }
    "{\"code\":0}"
}
