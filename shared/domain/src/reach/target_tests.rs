use proptest::prelude::*;

use super::*;

fn policy(allowed: &[&str]) -> Policy {
    let allowed_hosts = allowed.iter().map(|host| host.parse().unwrap()).collect();
    Policy { allowed_hosts, ..Policy::default() }
}

fn reason(url: &str, policy: &Policy) -> Reason {
    check(url, policy).expect_err(url).reason
}

/// Every notation is refused, and the reason shows as what it was understood.
#[test]
fn hostile_notations_are_refused() {
    let address = |ip: &str| Reason::Address(ip.parse().unwrap());
    let malformed = |problem: &str| Reason::Malformed(problem.to_owned());
    let loopback = || address("127.0.0.1");
    let none = Policy::default();
    let table = [
        // IPv4 as numbers.
        ("http://127.0.0.1/", loopback()),
        ("http://2130706433/", loopback()),
        ("http://0x7f000001/", loopback()),
        ("http://0X7F000001/", loopback()),
        ("http://017700000001/", loopback()),
        ("http://0x7f.1/", loopback()),
        ("http://0x7f.0x0.0x0.0x1/", loopback()),
        ("http://0177.0.0.1/", loopback()),
        ("http://0177.0.0.0x1/", loopback()),
        ("http://127.1/", loopback()),
        ("http://127.0.1/", loopback()),
        ("http://127.0.0.1./", loopback()),
        ("http://0/", address("0.0.0.0")),
        ("http://0x/", address("0.0.0.0")),
        ("http://0.0.0.0/", address("0.0.0.0")),
        ("http://127.255.255.254/", address("127.255.255.254")),
        ("http://2852039166/", address("169.254.169.254")),
        ("http://0xa9fea9fe/latest/meta-data/", address("169.254.169.254")),
        ("http://169.254.43518/", address("169.254.169.254")),
        ("http://0251.0376.0251.0376/", address("169.254.169.254")),
        ("http://169.254.170.2/v2/credentials", address("169.254.170.2")),
        ("http://100.100.100.200/", address("100.100.100.200")),
        ("http://10.0.0.1/", address("10.0.0.1")),
        ("http://167772161/", address("10.0.0.1")),
        ("http://172.31.255.255/", address("172.31.255.255")),
        ("http://192.168.1/", address("192.168.0.1")),
        ("http://100.64.0.1/", address("100.64.0.1")),
        ("http://255.255.255.255/", address("255.255.255.255")),
        ("http://256.0.0.1/", malformed("invalid IPv4 address")),
        ("http://4294967296/", malformed("invalid IPv4 address")),
        ("http://1.2.3.4.5/", malformed("invalid IPv4 address")),
        ("http://127.0.0.0x/", address("127.0.0.0")),
        // Other characters for the same digits and dots.
        ("http://①②⑦.⓪.⓪.①/", loopback()),
        ("http://１２７.０.０.１/", loopback()),
        ("http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/", loopback()),
        ("http://127。0。0。1/", loopback()),
        ("http://127．0．0．1/", loopback()),
        ("http://127｡0｡0｡1/", loopback()),
        ("http://%31%32%37.0.0.1/", loopback()),
        ("http://127%2e0%2e0%2e1/", loopback()),
        ("http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", loopback()),
        ("http://0\u{ff58}7f.1/", loopback()),
        ("http://127.0.\u{ad}0.1/", loopback()),
        ("http://127.0.\u{200b}0.1/", loopback()),
        ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", Reason::Internal),
        ("http://ｌｏｃａｌｈｏｓｔ/", Reason::Internal),
        ("http://%6c%6f%63alhost/", Reason::Internal),
        ("http://%25%33%31/", malformed("invalid international domain name")),
        // Slashes and control characters.
        ("http:\\\\127.0.0.1\\", loopback()),
        ("http:/127.0.0.1/", loopback()),
        ("http:127.0.0.1", loopback()),
        ("http:////127.0.0.1/", loopback()),
        ("https:/\\/\\127.0.0.1", loopback()),
        ("http://127.0.0.1\\@example.com/", loopback()),
        ("http://127.0.0.1#@example.com/", loopback()),
        ("http://127.0.0.1?@example.com/", loopback()),
        ("ht\ttp://127.0.0.1/", Reason::Characters),
        ("http://127.0.0.1\n/", Reason::Characters),
        ("http://exa\nmple.com/", Reason::Characters),
        ("http://exam\tple.com/", Reason::Characters),
        ("http://example.com/\r\nHost: 127.0.0.1", Reason::Characters),
        ("http://example.com\0.evil.example/", Reason::Characters),
        ("http://example.com/\u{85}", Reason::Characters),
        (" http://example.com/", Reason::Characters),
        ("http://example.com/\u{a0}", Reason::Characters),
        // IPv6.
        ("http://[::1]/", address("::1")),
        ("http://[0:0:0:0:0:0:0:1]/", address("::1")),
        ("http://[::]/", address("::")),
        ("http://[::ffff:127.0.0.1]/", address("::ffff:127.0.0.1")),
        ("http://[::ffff:7f00:1]/", address("::ffff:127.0.0.1")),
        ("http://[::FFFF:A9FE:A9FE]/", address("::ffff:169.254.169.254")),
        ("http://[::127.0.0.1]/", address("::7f00:1")),
        ("http://[64:ff9b::169.254.169.254]/", address("64:ff9b::a9fe:a9fe")),
        ("http://[2002:7f00:1::]/", address("2002:7f00:1::")),
        ("http://[2001:0:7f00:1::]/", address("2001:0:7f00:1::")),
        ("http://[fd00:ec2::254]/", address("fd00:ec2::254")),
        ("http://[fc00::1]/", address("fc00::1")),
        ("http://[fe80::1]/", address("fe80::1")),
        ("http://[fe80::1%25eth0]/", malformed("invalid IPv6 address")),
        ("http://[::1%251]/", malformed("invalid IPv6 address")),
        ("http://[::1]example.com/", malformed("invalid IPv6 address")),
        ("http://::1/", malformed("empty host")),
        ("http://[::1", malformed("invalid IPv6 address")),
        ("http://[v1.1]/", malformed("invalid IPv6 address")),
        // Names of private networks.
        ("http://localhost/", Reason::Internal),
        ("http://LOCALHOST/", Reason::Internal),
        ("http://localhost./", Reason::Name),
        ("http://app.localhost/", Reason::Internal),
        ("http://printer.local/", Reason::Internal),
        ("http://metadata.google.internal/", Reason::Internal),
        ("http://METADATA.GOOGLE.INTERNAL/", Reason::Internal),
        ("http://ip-10-0-0-1.eu-central-1.compute.internal/", Reason::Internal),
        ("http://router.home.arpa/", Reason::Internal),
        ("http://intranet/", Reason::Internal),
        ("http://redis/", Reason::Internal),
        ("http://xn--bcher-kva/", Reason::Internal),
        ("http://example.com./", Reason::Name),
        ("http://example.com../", Reason::Name),
        ("http://example..com/", Reason::Name),
        ("http://.example.com/", Reason::Name),
        ("http://*.example.com/", Reason::Name),
        ("http://exa'mple.com/", Reason::Name),
        ("http://exa mple.com/", malformed("invalid international domain name")),
        ("http://xn--a/", malformed("invalid international domain name")),
        ("http://example.com%00/", malformed("invalid international domain name")),
        ("http://example.com%2f@127.0.0.1/", Reason::Credentials),
        // Nothing, or somebody.
        ("", malformed("relative URL without a base")),
        ("/latest/meta-data", malformed("relative URL without a base")),
        ("//127.0.0.1/", malformed("relative URL without a base")),
        ("127.0.0.1", malformed("relative URL without a base")),
        ("http://", malformed("empty host")),
        ("http:///", malformed("empty host")),
        ("http://:80/", malformed("empty host")),
        ("http://%/", malformed("invalid international domain name")),
        ("http://user@example.com/", Reason::Credentials),
        ("http://user:secret@example.com/", Reason::Credentials),
        ("http://:secret@example.com/", Reason::Credentials),
        ("http://example.com@127.0.0.1/", Reason::Credentials),
        ("http://example.com:80@127.0.0.1/", Reason::Credentials),
        ("http://a@b@127.0.0.1/", Reason::Credentials),
        // Ports.
        ("http://example.com:0/", Reason::Port(0)),
        ("http://example.com:22/", Reason::Port(22)),
        ("http://example.com:6379/", Reason::Port(6379)),
        ("https://example.com:8443/", Reason::Port(8443)),
        ("http://8.8.8.8:53/", Reason::Port(53)),
        ("http://example.com:65536/", malformed("invalid port number")),
        ("http://example.com:８０/", malformed("invalid port number")),
        ("http://example.com:-1/", malformed("invalid port number")),
        // Schemes.
        ("file:///etc/passwd", Reason::Scheme),
        ("file://127.0.0.1/etc/passwd", Reason::Scheme),
        ("ftp://example.com/", Reason::Scheme),
        ("gopher://127.0.0.1:6379/_FLUSHALL", Reason::Scheme),
        ("data:text/html,<script>", Reason::Scheme),
        ("javascript:alert(1)", Reason::Scheme),
        ("ws://example.com/", Reason::Scheme),
        ("unix:/var/run/docker.sock", Reason::Scheme),
        ("blob:https://example.com/1", Reason::Scheme),
        ("view-source:http://127.0.0.1/", Reason::Scheme),
        ("localhost:80", Reason::Scheme),
        ("httpſ://example.com/", malformed("relative URL without a base")),
    ];
    assert!(table.len() > 100, "{}", table.len());
    let judged =
        |url| check(url, &none).map(|checked| checked.url().to_string()).map_err(|refused| refused.reason);
    let wrong = table.into_iter().map(|(url, expected)| (url, judged(url), expected));
    let wrong =
        wrong.filter(|(_, judged, expected)| judged.as_ref().err() != Some(expected)).collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let long = format!("http://example.com/{}", "a".repeat(MAX_URL_BYTES));
    assert_eq!(reason(&long, &none), Reason::Long);
    assert_eq!(reason(&format!("http://{}.example.com/", "a".repeat(64)), &none), Reason::Name);
    assert_eq!(reason(&format!("http://{}com/", "abcdefg.".repeat(40)), &none), Reason::Name);
}

#[test]
fn public_urls_pass_in_the_form_that_is_requested() {
    for (url, requested) in [
        ("https://example.com", "https://example.com/"),
        ("http://example.com/", "http://example.com/"),
        ("HTTPS://EXAMPLE.COM:443/A?b=c#secret", "https://example.com/A?b=c"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("https://bücher.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://ｅｘａｍｐｌｅ.com/", "https://example.com/"),
        ("https://a_b.example.com/", "https://a_b.example.com/"),
        ("https://example.com/a/../b/%2e%2e/c", "https://example.com/c"),
        ("https://example.com/@127.0.0.1", "https://example.com/@127.0.0.1"),
        ("https://example.com/?url=http://127.0.0.1/", "https://example.com/?url=http://127.0.0.1/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://134744072/", "http://8.8.8.8/"),
        // Zeros in front make a number octal.
        ("http://0000127.0.0.1/", "http://87.0.0.1/"),
        ("http://[2606:4700:4700::1111]/", "http://[2606:4700:4700::1111]/"),
        ("http://thelocal.com/", "http://thelocal.com/"),
        ("http://notlocalhost.io/", "http://notlocalhost.io/"),
        ("http://internal.example.com/", "http://internal.example.com/"),
    ] {
        let checked = check(url, &Policy::default()).expect(url);
        assert_eq!((checked.url().as_str(), checked.is_allowed()), (requested, false));
    }
}

#[test]
fn only_the_hosts_that_the_operator_names_are_allowed() {
    let policy = policy(&[
        "models.internal:8080",
        "10.0.0.7",
        "localhost:11434",
        "[fd00::7]:8443",
        "api.example.com:8443",
    ]);
    for url in [
        "http://models.internal:8080/v1",
        "https://MODELS.internal:8080/",
        "http://10.0.0.7/",
        "https://10.0.0.7/",
        "http://167772167/",
        "http://localhost:11434/",
        "http://[fd00:0::7]:8443/",
        "https://api.example.com:8443/",
    ] {
        assert!(check(url, &policy).expect(url).is_allowed(), "{url}");
    }
    for (url, expected) in [
        ("http://models.internal/", Reason::Internal),
        ("http://models.internal:8081/", Reason::Internal),
        ("http://a.models.internal:8080/", Reason::Internal),
        ("http://models.internal.:8080/", Reason::Name),
        ("http://10.0.0.7:8080/", Reason::Address([10, 0, 0, 7].into())),
        ("http://10.0.0.8/", Reason::Address([10, 0, 0, 8].into())),
        ("http://127.0.0.1:11434/", Reason::Address([127, 0, 0, 1].into())),
        ("http://user@models.internal:8080/", Reason::Credentials),
        ("ftp://models.internal:8080/", Reason::Scheme),
        ("https://api.example.com:8080/", Reason::Port(8080)),
    ] {
        assert_eq!(reason(url, &policy), expected, "{url}");
    }
    // At its public port, the host is a public one: its private addresses are refused.
    assert!(!check("https://api.example.com/", &policy).unwrap().is_allowed());
}

#[test]
fn addresses_from_dns_are_judged_with_the_name() {
    for (name, allowed, ip, expected) in [
        ("example.com", false, "8.8.8.8", true),
        ("example.com", false, "10.0.0.1", false),
        ("example.com", false, "127.0.0.1", false),
        ("models.internal", true, "10.0.0.1", true),
        ("models.internal", true, "fd12::1", true),
        ("models.internal", true, "127.0.0.1", false),
        ("models.internal", true, "::1", false),
        ("models.internal", true, "0.0.0.0", false),
        ("models.internal", true, "169.254.169.254", false),
        ("models.internal", true, "169.254.170.2", false),
        ("models.internal", true, "fd00:ec2::254", false),
        ("models.internal", true, "::ffff:10.0.0.1", false),
        ("localhost", true, "127.0.0.1", true),
        ("localhost", true, "::1", true),
        ("localhost", true, "169.254.169.254", false),
        ("localhost", false, "127.0.0.1", false),
    ] {
        assert_eq!(may_connect(name, allowed, ip.parse().unwrap()), expected, "{name} {allowed} {ip}");
    }
}

#[test]
fn a_redirect_is_judged_as_a_url() {
    let none = Policy::default();
    let from = check("https://example.com/a/b", &none).unwrap();
    for (location, expected) in [
        ("c", Ok("https://example.com/a/c")),
        ("/c?d", Ok("https://example.com/c?d")),
        ("//example.org/", Ok("https://example.org/")),
        ("", Ok("https://example.com/a/b")),
        ("//127.0.0.1/", Err(Reason::Address([127, 0, 0, 1].into()))),
        ("\\\\127.1\\", Err(Reason::Address([127, 0, 0, 1].into()))),
        ("http:/\\169.254.169.254/", Err(Reason::Address([169, 254, 169, 254].into()))),
        ("https://user@example.com/", Err(Reason::Credentials)),
        ("file:///etc/passwd", Err(Reason::Scheme)),
        ("/\t/127.0.0.1/", Err(Reason::Characters)),
    ] {
        let to = from.join(location, &none).map_err(|refused| refused.reason);
        assert_eq!(to.as_ref().map(|to| to.url().as_str()), expected.as_ref().copied(), "{location:?}");
    }
    let other = from.join("http://example.com/", &none).unwrap();
    assert!(!from.is_same_origin(&other) && from.is_same_origin(&from.join("/c", &none).unwrap()));
}

#[test]
fn refusals_name_the_target_without_secrets() {
    for (url, expected) in [
        (
            "http://10.0.0.1:8080/hook/secret?key=secret#secret",
            "http://10.0.0.1:8080 is refused: 10.0.0.1 is an address of a private network. The operator may allow it with \
             LAMPLIGHTER_ALLOWED_HOSTS, as host:port",
        ),
        (
            "https://secret:secret@example.com/",
            "https://example.com is refused: the URL must not have a user name or a password",
        ),
        (
            "javascript:secret",
            "a URL with the scheme javascript is refused: the scheme must be http or https",
        ),
        ("http://[secret", "the URL is refused: the URL is invalid (invalid IPv6 address)"),
        (
            "https://example.com:22/",
            "https://example.com:22 is refused: port 22 is not permitted for this host. The operator may allow it with \
             LAMPLIGHTER_ALLOWED_HOSTS, as host:port",
        ),
    ] {
        assert_eq!(check(url, &Policy::default()).unwrap_err().to_string(), expected);
    }
    let internal = check("http://db.local/secret", &Policy::default()).unwrap_err().to_string();
    assert!(
        internal.starts_with("http://db.local is refused: names without a dot, and names in .localhost, ")
    );
    let checked = check("https://example.com/secret?secret", &Policy::default()).unwrap();
    assert!(!format!("{checked:?}").contains("secret"));
}

/// Whoever is refused because a host is not public learns who may change it, and only if somebody can.
#[test]
fn a_refusal_names_the_variable_only_if_the_operator_may_allow_the_host() {
    let hint = "The operator may allow it with LAMPLIGHTER_ALLOWED_HOSTS, as host:port";
    for url in [
        "https://10.0.0.1/",
        "http://192.168.1.5:8080/",
        "http://127.0.0.1/",
        "https://[fd00::7]/",
        "https://ntfy.lan/",
        "https://gotify/",
        "https://example.com:8443/",
    ] {
        let told = check_https(url, &Policy::default()).unwrap_err();
        assert!(
            told.starts_with("must be a public https address: ") && told.ends_with(hint),
            "{url}: {told}"
        );
    }
    for host in ["10.0.0.1", "db.internal", "8.8.8.8"] {
        assert!(check_host(host, &Policy::default()).unwrap_err().to_string().ends_with(hint), "{host}");
    }
    for url in ["http://169.254.169.254/", "https://[fe80::1]/", "ftp://10.0.0.1/", "https://a@10.0.0.1/"] {
        assert!(!check(url, &Policy::default()).unwrap_err().to_string().contains("LAMPLIGHTER"), "{url}");
    }
    for (name, ip, may) in [
        ("home.example.com", "192.168.1.5", true),
        ("localhost", "127.0.0.1", true),
        // The owner of the name could point it at this machine, so allowing it is not enough.
        ("home.example.com", "127.0.0.1", false),
        ("home.example.com", "169.254.169.254", false),
    ] {
        let told = not_public(Some(name), ip.parse().unwrap());
        assert_eq!(told.ends_with(hint), may, "{told}");
        assert!(told.starts_with(&format!("{ip} is a")), "{told}");
    }
}

#[test]
fn a_server_of_another_protocol_is_judged_as_the_host_of_a_url() {
    let allowed_hosts = ["192.168.1.5:2525", "mail.lan:25", "10.0.0.7"].map(|host| host.parse().unwrap());
    let policy = Policy { allowed_hosts: allowed_hosts.to_vec(), ..Policy::default() };
    let judged = |host: &str, port: u16| match check_server(host, port, &[465, 587], &policy) {
        Ok(server) => format!("{server} {}", if server.is_allowed() { "allowed" } else { "public" }),
        Err(reason) => format!("{reason:?}"),
    };
    for (host, port, expected) in [
        ("Mail.example.com", 465, "mail.example.com:465 public"),
        ("8.8.8.8", 587, "8.8.8.8:587 public"),
        ("[2606:4700::1111]", 465, "[2606:4700::1111]:465 public"),
        ("mail.example.com", 25, "Port(25)"),
        ("mail.example.com", 443, "Port(443)"),
        ("mail.lan", 25, "mail.lan:25 allowed"),
        ("MAIL.lan", 465, "Internal"),
        ("192.168.1.5", 2525, "192.168.1.5:2525 allowed"),
        ("192.168.1.5", 587, "Address(192.168.1.5)"),
        // It is allowed for HTTP.
        ("10.0.0.7", 465, "Address(10.0.0.7)"),
        ("0x7f.1", 465, "Address(127.0.0.1)"),
        ("169.254.169.254", 465, "Address(169.254.169.254)"),
        ("localhost", 465, "Internal"),
        ("mail.example.com.", 465, "Name"),
        ("", 465, "Malformed(\"empty host\")"),
        ("mail.example.com\r\nx", 465, "Characters"),
        (" mail.example.com", 465, "Characters"),
    ] {
        assert_eq!(judged(host, port), expected, "{host}:{port}");
    }
    for host in ["user@mail.example.com", "mail.example.com/x", "mail.example.com:25", "a b.example.com"] {
        assert!(judged(host, 465).starts_with("Malformed"), "{host}: {}", judged(host, 465));
    }
    let server = check_server("[2606:4700::1111]", 465, &[465], &policy).unwrap();
    assert_eq!((server.host(), server.port(), server.literal().is_some()), ("2606:4700::1111", 465, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// What passes is a URL of a public host at a permitted port, and stays one if it is parsed again.
    #[test]
    fn no_text_passes_that_is_not_public(
        text in "(https?|HTTP|ftp):?[/\\\\]{0,3}([a-z0-9.:@%\\[\\]①②⑦。．０１x\\-]|127|169\\.254|::|ffff|localhost){1,12}(:[0-9]{1,5})?[/?#\\\\]?.{0,8}",
    ) {
        let policy = Policy::default();
        let Ok(checked) = check(&text, &policy) else { return Ok(()) };
        let url = checked.url();
        prop_assert!(matches!(url.scheme(), "http" | "https"));
        prop_assert!(matches!(url.port_or_known_default(), Some(80 | 443)));
        prop_assert!(url.username().is_empty() && url.password().is_none());
        let host = url.host_str().unwrap();
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => prop_assert_eq!(Address::of(ip), Address::Public),
            Err(_) => prop_assert!(host.contains('.') && !host.ends_with('.') && !host.ends_with(".localhost")),
        }
        prop_assert!(check(url.as_str(), &policy).unwrap() == checked);
    }
}
