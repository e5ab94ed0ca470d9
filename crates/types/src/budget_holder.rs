//! Who shares one budget of slots, memory, queue places, connections and transfers: an owner, or the network of an anonymous caller.

use crate::Principal;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Everything that is limited per owner is counted under this. It is derived from authentication and the remote address, never from what a
/// request says about itself, so a caller can't choose it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetHolder {
    /// However many connections and addresses it uses.
    Owner(Principal),
    /// Callers without authentication share the owner `anonymous`, so they are told apart by address.
    Network(IpAddr),
}

/// Bits of an IPv6 address that identify a network. One customer has at least all addresses with the same prefix.
const IPV6_PREFIX_BITS: u32 = 64;

impl BudgetHolder {
    /// The holder for a caller. `address` is the remote address of its connection; none for callers in this process and over stdio.
    pub fn new(principal: &Principal, address: Option<IpAddr>) -> Self {
        match address {
            Some(address) if principal.is_anonymous() => Self::network(address),
            _ => Self::Owner(principal.clone()),
        }
    }

    /// The holder for a connection whose caller is not known yet.
    pub fn network(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - IPV6_PREFIX_BITS))).into(),
        })
    }
}

impl Default for BudgetHolder {
    fn default() -> Self {
        Self::Owner(Principal::default())
    }
}

impl From<&Principal> for BudgetHolder {
    fn from(principal: &Principal) -> Self {
        Self::Owner(principal.clone())
    }
}

impl fmt::Display for BudgetHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(principal) => principal.fmt(f),
            Self::Network(address @ IpAddr::V4(_)) => address.fmt(f),
            Self::Network(address) => write!(f, "{address}/{IPV6_PREFIX_BITS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_apart_by_name_and_anonymous_callers_by_network() {
        let holder = |principal: &str, address: &str| {
            let address = (!address.is_empty()).then(|| address.parse().expect("an address"));
            BudgetHolder::new(&principal.parse().expect("an owner"), address).to_string()
        };
        for (principal, address, expected) in [
            ("acme/ann", "10.0.0.1", "acme/ann"),
            ("acme/ann", "", "acme/ann"),
            ("local", "127.0.0.1", "local"),
            ("anonymous", "10.0.0.1", "10.0.0.1"),
            ("anonymous", "::ffff:10.0.0.1", "10.0.0.1"),
            ("anonymous", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("anonymous", "2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
            ("anonymous", "2001:db8:1:3::1", "2001:db8:1:3::/64"),
            ("anonymous", "", "anonymous"),
        ] {
            assert_eq!(holder(principal, address), expected, "{principal} {address}");
        }
    }
}
