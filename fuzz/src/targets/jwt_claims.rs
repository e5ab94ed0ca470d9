//! Claims of a JWT whose signature is valid: they name one owner, whose tenant is the one in the claims, or none.

use heapstead_server::fuzzing::{claims, issuer};
use heapstead_types::Principal;
use serde_json::{Map, Value};

const KEYS: &[u8] = include_bytes!("../../keys.json");

pub fn run(bytes: &[u8]) {
    let Ok(given) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return };
    let issuer = issuer(KEYS, "https://issuer.example/", "heapstead").expect("an issuer");
    let Some((owner, permissions)) = claims(&issuer, &given) else { return };
    let owner: Principal = owner.parse().expect("an owner is written as it is read");
    let tenant = given.get("tenant").map_or("default", |tenant| tenant.as_str().expect("a tenant is text"));
    assert!(!owner.is_anonymous() && owner.tenant() == Some(tenant), "{owner}");
    assert!(permissions == 0 || given["scope"].as_str().is_some_and(|scope| scope.contains("heaps:import")));
}
