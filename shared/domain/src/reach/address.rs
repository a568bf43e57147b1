//! What kind of network an IP address belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A server on the internet.
    Public,
    /// A private network. It is reached only if the operator allows the host.
    Private,
    /// This machine. It is reached only if the operator allows the literal, or `localhost`.
    Loopback,
    /// Never reached: link-local addresses (AWS has its metadata, its credentials and the Lambda runtime there), addresses that
    /// embed an IPv4 address, multicast, documentation, and everything that is not assigned.
    Reserved,
}

impl Address {
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => of_v4(ip),
            IpAddr::V6(ip) => of_v6(ip),
        }
    }

    /// The kind in words, for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Private => "an address of a private network",
            Self::Loopback => "a loopback address",
            Self::Reserved => "a reserved address",
        }
    }
}

const fn of_v4(ip: Ipv4Addr) -> Address {
    match ip.octets() {
        [127, ..] => Address::Loopback,
        // Alibaba Cloud has its metadata inside of the range of carriers.
        [100, 100, 100, 200] => Address::Reserved,
        [10, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [198, 18..=19, ..] => Address::Private,
        // "This network": Linux connects to itself for 0.0.0.0.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        // The relays of 6to4.
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        // Multicast, reserved and broadcast.
        | [224..=255, ..] => Address::Reserved,
        _ => Address::Public,
    }
}

/// Only 2000::/3 is assigned to servers on the internet. So forms that embed an IPv4 address (`::ffff:0:0/96`, `64:ff9b::/96`, …) are
/// not public.
const fn of_v6(ip: Ipv6Addr) -> Address {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Address::Loopback,
        // AWS has its metadata and its credentials in fd00:ec2::/32.
        [0xfd00, 0x0ec2, ..] => Address::Reserved,
        [0xfc00..=0xfdff, ..] => Address::Private,
        // Protocols (Teredo is one), documentation, 6to4, and documentation again.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => {
            Address::Reserved
        }
        [0x2000..=0x3fff, ..] => Address::Public,
        _ => Address::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the registries of IANA write them.
    const NOT_PUBLIC_V4: &[(&str, u32)] = &[
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.88.99.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
    ];
    const NOT_PUBLIC_V6: &[(&str, u32)] =
        &[("2001::", 23), ("2001:db8::", 32), ("2002::", 16), ("3fff::", 20)];

    fn v4(text: &str) -> u32 {
        text.parse::<Ipv4Addr>().unwrap().to_bits()
    }

    fn v6(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().unwrap().to_bits()
    }

    fn is_public_v4(ip: u32) -> bool {
        !NOT_PUBLIC_V4.iter().any(|(net, prefix)| (ip ^ v4(net)) >> (32 - prefix) == 0)
    }

    fn is_public_v6(ip: u128) -> bool {
        ip >> 125 == 1 && !NOT_PUBLIC_V6.iter().any(|(net, prefix)| (ip ^ v6(net)) >> (128 - prefix) == 0)
    }

    fn judged(ip: impl Into<IpAddr>) -> bool {
        Address::of(ip.into()) == Address::Public
    }

    #[test]
    fn each_range_ends_exactly_at_its_ends() {
        for (net, prefix) in NOT_PUBLIC_V4 {
            let (first, size) = (v4(net), 1_u64 << (32 - prefix));
            let last = u32::try_from(u64::from(first) + size - 1).unwrap();
            for ip in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                assert_eq!(judged(Ipv4Addr::from_bits(ip)), is_public_v4(ip), "{}", Ipv4Addr::from_bits(ip));
            }
            assert!(
                !judged(Ipv4Addr::from_bits(first)) && !judged(Ipv4Addr::from_bits(last)),
                "{net}/{prefix}"
            );
        }
        for (net, prefix) in
            NOT_PUBLIC_V6.iter().chain(&[("2000::", 3), ("::", 3), ("4000::", 2), ("8000::", 1)])
        {
            let (first, size) = (v6(net), 1_u128 << (128 - prefix));
            let last = first + (size - 1);
            for ip in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                assert_eq!(judged(Ipv6Addr::from_bits(ip)), is_public_v6(ip), "{}", Ipv6Addr::from_bits(ip));
            }
        }
    }

    #[test]
    fn what_is_never_reached_is_neither_private_nor_loopback() {
        for (ip, expected) in [
            ("8.8.8.8", Address::Public),
            ("2606:4700::1111", Address::Public),
            ("10.1.2.3", Address::Private),
            ("100.64.0.1", Address::Private),
            ("198.19.255.255", Address::Private),
            ("fc00::1", Address::Private),
            ("fdff:ffff::1", Address::Private),
            ("127.0.0.1", Address::Loopback),
            ("127.255.255.255", Address::Loopback),
            ("::1", Address::Loopback),
            ("0.0.0.0", Address::Reserved),
            ("::", Address::Reserved),
            ("169.254.169.254", Address::Reserved),
            ("169.254.170.2", Address::Reserved),
            // The runtime API of Lambda, in some environments.
            ("169.254.100.1", Address::Reserved),
            ("100.100.100.200", Address::Reserved),
            // The metadata of Oracle Cloud.
            ("192.0.0.192", Address::Reserved),
            ("fd00:ec2::254", Address::Reserved),
            ("fd00:ec2::23", Address::Reserved),
            ("fe80::1", Address::Reserved),
            ("ff02::1", Address::Reserved),
            ("::ffff:127.0.0.1", Address::Reserved),
            ("::ffff:8.8.8.8", Address::Reserved),
            ("::127.0.0.1", Address::Reserved),
            ("64:ff9b::7f00:1", Address::Reserved),
            ("64:ff9b:1::1", Address::Reserved),
            ("2001:0:4136:e378::1", Address::Reserved),
            ("2002:7f00:1::1", Address::Reserved),
            ("100::1", Address::Reserved),
            ("5f00::1", Address::Reserved),
            ("fec0::1", Address::Reserved),
            ("255.255.255.255", Address::Reserved),
        ] {
            assert_eq!(Address::of(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn no_v4_address_outside_of_the_public_ranges_passes(ip: u32) {
            prop_assert_eq!(judged(Ipv4Addr::from_bits(ip)), is_public_v4(ip));
        }

        #[test]
        fn no_v4_address_of_a_special_range_passes(range in 0..NOT_PUBLIC_V4.len(), bits: u32) {
            let (net, prefix) = NOT_PUBLIC_V4[range];
            prop_assert!(!judged(Ipv4Addr::from_bits(v4(net) | bits >> prefix)));
        }

        #[test]
        fn no_v6_address_outside_of_the_public_ranges_passes(ip: u128) {
            prop_assert_eq!(judged(Ipv6Addr::from_bits(ip)), is_public_v6(ip));
            // Seven of eight addresses are outside of 2000::/3. This one is inside.
            let inside = ip >> 3 | 1 << 125;
            prop_assert_eq!(judged(Ipv6Addr::from_bits(inside)), is_public_v6(inside));
        }

        #[test]
        fn no_v6_address_of_a_special_range_passes(range in 0..NOT_PUBLIC_V6.len(), bits: u128) {
            let (net, prefix) = NOT_PUBLIC_V6[range];
            prop_assert!(!judged(Ipv6Addr::from_bits(v6(net) | bits >> prefix)));
        }
    }
}
