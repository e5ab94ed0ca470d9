//! Catalog search, and a server that refuses to start with an invalid catalog.

use crate::fixture::{Folders, Server};
use crate::owner::{Owner, Site};
use serde_json::Value;

#[tokio::test]
async fn entities_are_found_by_words_without_opening_a_session() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let names = async |query: &str| {
        let (status, found) = ann.get(&server, &format!("/api/catalogs/search?query={query}")).await;
        assert_eq!(status, 200, "{found}");
        found["entities"]
            .as_array()
            .expect("entities")
            .iter()
            .map(|hit| hit["entity"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("mean").await[0], "mean");
    assert!(names("months").await.contains(&"addMonths".to_owned()));
    assert!(names("nothing-like-this-anywhere").await.is_empty());
    let (_, sessions) = ann.get(&server, "/api/sessions/opened").await;
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(0));
    let (_, found) = ann.get(&server, "/api/catalogs/search?query=mean&limit=1").await;
    let Value::Array(hits) = &found["entities"] else { panic!("{found}") };
    assert_eq!(hits.len(), 1);
    assert!(hits[0]["signature"].as_str().expect("a signature").contains("values"), "{found}");
}

#[test]
fn the_server_does_not_start_with_an_invalid_catalog() {
    let folders = Folders::new();
    let catalog = folders.path().join("broken");
    std::fs::create_dir(&catalog).expect("a folder");
    std::fs::write(catalog.join("catalog.json"), r#"{ "name": "broken", "version": "1" }"#).expect("written");
    std::fs::write(catalog.join("index.js"), "export const a = 1;\nexport function (").expect("written");
    let ran = Server::command(&folders).args(["--http-port", "0", "--catalog"]).arg(&catalog).output().expect("it ends");
    assert_ne!(ran.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("index.js:2"), "{said}");
}
