//! The time zone of a place by its name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::tz;

/// Zones of these areas end with the name of a city. Others, such as `US/Eastern` and `Etc/GMT+2`, do not.
const AREAS: [&str; 9] =
    ["Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian"];

/// Large cities, and countries with one zone, that have no zone with their name. `Pacific` has islands only, so it is listed here.
const OTHERS: [(&str, &str); 57] = [
    ("abu dhabi", "Asia/Dubai"),
    ("atlanta", "America/New_York"),
    ("auckland", "Pacific/Auckland"),
    ("austin", "America/Chicago"),
    ("austria", "Europe/Vienna"),
    ("bangalore", "Asia/Kolkata"),
    ("barcelona", "Europe/Madrid"),
    ("basel", "Europe/Zurich"),
    ("beijing", "Asia/Shanghai"),
    ("bern", "Europe/Zurich"),
    ("boston", "America/New_York"),
    ("cape town", "Africa/Johannesburg"),
    ("cologne", "Europe/Berlin"),
    ("dallas", "America/Chicago"),
    ("delhi", "Asia/Kolkata"),
    ("edinburgh", "Europe/London"),
    ("england", "Europe/London"),
    ("france", "Europe/Paris"),
    ("frankfurt", "Europe/Berlin"),
    ("geneva", "Europe/Zurich"),
    ("germany", "Europe/Berlin"),
    ("hamburg", "Europe/Berlin"),
    ("hanoi", "Asia/Bangkok"),
    ("honolulu", "Pacific/Honolulu"),
    ("houston", "America/Chicago"),
    ("india", "Asia/Kolkata"),
    ("ireland", "Europe/Dublin"),
    ("italy", "Europe/Rome"),
    ("japan", "Asia/Tokyo"),
    ("kyiv", "Europe/Kyiv"),
    ("kyoto", "Asia/Tokyo"),
    ("lyon", "Europe/Paris"),
    ("manchester", "Europe/London"),
    ("miami", "America/New_York"),
    ("milan", "Europe/Rome"),
    ("montreal", "America/Toronto"),
    ("mumbai", "Asia/Kolkata"),
    ("munich", "Europe/Berlin"),
    ("new delhi", "Asia/Kolkata"),
    ("nyc", "America/New_York"),
    ("osaka", "Asia/Tokyo"),
    ("philadelphia", "America/New_York"),
    ("poland", "Europe/Warsaw"),
    ("rio de janeiro", "America/Sao_Paulo"),
    ("rotterdam", "Europe/Amsterdam"),
    ("san francisco", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("stuttgart", "Europe/Berlin"),
    ("sweden", "Europe/Stockholm"),
    ("switzerland", "Europe/Zurich"),
    ("são paulo", "America/Sao_Paulo"),
    ("tel aviv", "Asia/Jerusalem"),
    ("the hague", "Europe/Amsterdam"),
    ("turin", "Europe/Rome"),
    ("uk", "Europe/London"),
    ("washington", "America/New_York"),
    ("zürich", "Europe/Zurich"),
];

static PLACES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut places = BTreeMap::new();
    for name in tz::db().available() {
        let name = name.as_str();
        if let (Some((area, _)), Some((_, city))) = (name.split_once('/'), name.rsplit_once('/'))
            && AREAS.contains(&area)
        {
            places.insert(city.replace('_', " ").to_lowercase(), name.to_owned());
        }
    }
    places.extend(OTHERS.map(|(place, zone)| (place.to_owned(), zone.to_owned())));
    places.extend(["utc", "gmt"].map(|name| (name.to_owned(), "UTC".to_owned())));
    places
});

/// The IANA name of the zone of a place, given in lower case: "new york", "berlin", "utc".
pub fn zone_of(place: &str) -> Option<&'static str> {
    PLACES.get(place).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use domain::schedule::timezone_named;

    use super::*;

    #[test]
    fn every_place_has_a_zone_that_exists() {
        for (place, zone) in PLACES.iter() {
            assert!(timezone_named(zone).is_ok(), "{place}: {zone}");
        }
        for (place, zone) in [
            ("berlin", Some("Europe/Berlin")),
            ("new york", Some("America/New_York")),
            ("mexico city", Some("America/Mexico_City")),
            ("munich", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("eastern", None),
            ("atlantis", None),
            ("", None),
        ] {
            assert_eq!(zone_of(place), zone, "{place}");
        }
    }
}
