//! Concurrent writers to one context through two servers lose no update.

use crate::fixture::{Folders, Server};
use crate::redis_server;
use serde_json::{Map, json};

const WRITERS: usize = 64;

async fn all_arrive(servers: [Server; 2]) {
    // The first use of the name creates the session; both servers must find the same one.
    let each = |writer: usize| {
        let server = &servers[writer % 2];
        let (client, url) = (server.client.clone(), format!("{}/api/context", server.url));
        async move {
            let body = json!({ "session": "shared", "custom": { format!("k{writer}"): writer } });
            client.post(url).json(&body).send().await.expect("an answer").status().as_u16()
        }
    };
    let answers = futures_util::future::join_all((0..WRITERS).map(each)).await;
    assert_eq!(answers, vec![200; WRITERS]);
    for server in &servers {
        let (_, context) = server.get("/api/context?session=shared").await;
        assert_eq!(context["custom"].as_object().map(Map::len), Some(WRITERS), "{context:#}");
    }
}

#[tokio::test]
async fn in_sqlite() {
    let folders = Folders::new();
    all_arrive([Server::start_with(&folders, &[]), Server::start_with(&folders, &[])]).await;
}

#[tokio::test]
async fn in_redis() {
    let (redis, folders) = (redis_server::shared(), Folders::new());
    let url = redis.url();
    let arguments = ["--context-store", "redis", "--redis-url", &url];
    all_arrive([Server::start_with(&folders, &arguments), Server::start_with(&folders, &arguments)]).await;
}
