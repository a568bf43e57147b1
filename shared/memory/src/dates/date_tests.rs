use jiff::civil::date;

use super::*;
use crate::analysis::language_of;

/// The dates of a text that was written on Tuesday 2026-03-10, each as `2026-03-09` or `2026-03-02..2026-03-08`.
fn read_on_tuesday(text: &str) -> Vec<String> {
    let text = crate::tokens::normalized(text);
    let mut words = Words::default();
    words.read(&text);
    let times = read(&text, &words, language_of(&words), Some(day_of(date(2026, 3, 10))));
    let shown = |range: &Days| {
        let (start, end) = (date_of(range.start).unwrap(), date_of(range.end).unwrap());
        if start == end { start.to_string() } else { format!("{start}..{end}") }
    };
    times.ranges.iter().map(shown).collect()
}

#[test]
fn texts_have_their_dates() {
    let check = |text: &str, expected: &[&str]| assert_eq!(read_on_tuesday(text), expected, "{text}");
    // Absolute dates.
    check("It was on 8 May, 2023.", &["2023-05-08"]);
    check("1:56 pm on 8 May, 2023", &["2023-05-08"]);
    check("May 8, 2023 was fine", &["2023-05-08"]);
    check("on the 1st of April 2024", &["2024-04-01"]);
    check("2024-02-29 and 2023-02-29", &["2024-02-29"]);
    check("30.12.2023, 22:42", &["2023-12-30"]);
    check("12/25/2023", &["2023-12-25"]);
    check("5/8/2023", &["2023-08-05", "2023-05-08"]);
    check("in May 2023", &["2023-05-01..2023-05-31"]);
    check("in 2022", &["2022-01-01..2022-12-31"]);
    check("summer 2022", &["2022-06-01..2022-08-31"]);
    // Without a year, the nearest one.
    check("on January 5", &["2026-01-05"]);
    check("on 20 December", &["2025-12-20"]);
    check("in December", &["2025-12-01..2025-12-31"]);
    // Relative to the day of writing.
    check("Yesterday I ran.", &["2026-03-09"]);
    check("the day before yesterday", &["2026-03-08"]);
    check("the day after tomorrow", &["2026-03-12"]);
    check("see you tonight", &["2026-03-10"]);
    check("last week", &["2026-03-02..2026-03-08"]);
    check("this week", &["2026-03-09..2026-03-15"]);
    check("next week", &["2026-03-16..2026-03-22"]);
    check("last weekend", &["2026-03-07..2026-03-08"]);
    check("last month", &["2026-02-01..2026-02-28"]);
    check("next year", &["2027-01-01..2027-12-31"]);
    check("last Saturday", &["2026-03-07"]);
    check("next Tuesday", &["2026-03-17"]);
    check("on Friday", &["2026-03-06", "2026-03-13"]);
    check("last May", &["2025-05-01..2025-05-31"]);
    check("last summer", &["2025-06-01..2025-08-31"]);
    check("three days ago", &["2026-03-07"]);
    check("a couple weeks ago", &["2026-02-21..2026-02-27"]);
    check("2 months ago", &["2026-01-01..2026-01-31"]);
    check("in two days", &["2026-03-12"]);
    check("the past 10 days", &["2026-02-28..2026-03-10"]);
    // Words that only look like dates.
    check("She may march on, and 2000 people sat in the sun.", &[]);
    check("version 1.2.3, 31 cats, 10 days of rain", &[]);
    check("99 May, 32.13.2024", &[]);
    // Other languages.
    check("Gestern war ich in der Stadt und vorgestern nicht", &["2026-03-09", "2026-03-08"]);
    check("vor zwei Wochen waren wir am See", &["2026-02-21..2026-02-27"]);
    check("am 3. Oktober 2024 und im letzten Monat", &["2024-10-03", "2026-02-01..2026-02-28"]);
    check("Ich bin hier, und morgen bin ich dort", &["2026-03-11"]);
    check("Je suis arrivé hier avec mes amis", &["2026-03-09"]);
    check("il y a trois jours, nous étions à Paris", &["2026-03-07"]);
    check("la semaine dernière elle était malade", &["2026-03-02..2026-03-08"]);
    check("Ayer no fui, porque el mes pasado fui mucho", &["2026-03-09", "2026-02-01..2026-02-28"]);
    check("hace dos días que no como", &["2026-03-08"]);
    check("el 8 de mayo de 2023", &["2023-05-08"]);
    check("ieri non sono stato qui, e due giorni fa sì", &["2026-03-09", "2026-03-08"]);
    check("ontem eu não fui", &["2026-03-09"]);
    check("twee weken geleden was ik er niet", &["2026-02-21..2026-02-27"]);
    check("для меня это было вчера", &["2026-03-09"]);
    check("8 мая 2023 года", &["2023-05-08"]);
    check("昨天我去了医院", &["2026-03-09"]);
    check("2023年5月8日", &["2023-05-08"]);
    check("先週、京都に行った", &["2026-03-02..2026-03-08"]);
    check("５月８日", &["2026-05-08"]);
    check("지난주에 만났어요", &["2026-03-02..2026-03-08"]);
    check("2023년 5월 8일", &["2023-05-08"]);
    check("เมื่อวานฝนตก", &["2026-03-09"]);
}

#[test]
fn days_and_dates_convert() {
    for (day, expected) in [
        (0, date(1970, 1, 1)),
        (-1, date(1969, 12, 31)),
        (59, date(1970, 3, 1)),
        (11_016, date(2000, 2, 29)),
        (2_932_896, date(9999, 12, 31)),
        (-4_371_587, date(-9999, 1, 1)),
    ] {
        assert_eq!((date_of(day), day_of(expected)), (Some(expected), day));
    }
    assert_eq!(date_of(2_932_897), None);
    assert_eq!(date_of(i32::MAX), None);
    let mut at = date(1890, 1, 1);
    for day in day_of(at).. {
        assert_eq!((day_of(at), date_of(day)), (day, Some(at)));
        at = at.tomorrow().unwrap();
        if at.year() > 2110 {
            break;
        }
    }
}

#[test]
fn shares_of_ranges() {
    let week = Days { start: 10, end: 16 };
    assert_eq!(week.share_in(Days { start: 0, end: 100 }), 1.0);
    assert_eq!(week.share_in(Days { start: 16, end: 100 }), 1.0 / 7.0);
    assert_eq!(Days::one(12).share_in(week), 1.0);
    assert_eq!(week.share_in(Days::one(17)), 0.0);
}
