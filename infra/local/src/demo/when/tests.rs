use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

/// Wednesday, 25 November 2026, 14:31 in Berlin.
fn now() -> ZonedDateTime {
    "2026-11-25T13:31:00Z"
        .parse::<Timestamp>()
        .unwrap()
        .to_zoned_datetime(TimeZone::get("Europe/Berlin").unwrap())
}

fn when(text: &str) -> When {
    read(text, Some(&now())).when
}

/// The words are those that the platform has for a schedule.
#[test]
fn a_change_keeps_what_it_does_not_name() {
    let now = now();
    let read = |said: &str, cron: &str| {
        let current = in_words(&json!({"cron": cron, "timezone": "Europe/Berlin"}), Some(&now)).unwrap();
        read_change(said, &current, Some(&now)).when
    };
    for (said, was, is) in [
        ("make it Wednesday", "0 9 * * MON", "0 9 * * WED"),
        ("on Sunday", "30 8 * * MON-FRI", "30 8 * * SUN"),
        ("at 10 instead", "0 9 * * MON", "0 10 * * MON"),
        ("make it 7 am", "0 9 * * *", "0 7 * * *"),
        ("Wednesday at 18:15", "0 9 * * MON", "15 18 * * WED"),
        ("in the evening", "0 9 * * MON", "0 18 * * MON"),
        ("every Friday", "30 8 * * MON", "30 8 * * FRI"),
        ("change it to Fridays", "30 8 * * MON", "30 8 * * FRI"),
        ("change it to weekdays", "30 8 * * *", "30 8 * * MON-FRI"),
        ("Every day at 8 instead", "0 9 * * MON", "0 8 * * *"),
        ("Move it to 8 in the morning", "0 9 * * *", "0 8 * * *"),
        ("Move it to 8 in the evening", "0 9 * * MON", "0 20 * * MON"),
        ("from 9 am to 7:45", "0 9 * * *", "45 7 * * *"),
        ("from now on at noon", "0 9 * * *", "0 12 * * *"),
        ("move it to half past 8", "0 9 * * *", "30 8 * * *"),
    ] {
        let When::At(schedule) = read(said, was) else { panic!("{said}: {:?}", read(said, was)) };
        assert_eq!(schedule["cron"], is, "{said}, after {was}");
    }
    // What names no time leaves everything as it is.
    for said in ["Change it to 3 pages", "from Berlin to Rome", "make it shorter"] {
        assert_eq!(read(said, "0 9 * * *"), When::Unsaid, "{said}");
    }
    // A date is a date.
    assert_eq!(read("tomorrow at 8", "0 9 * * MON"), When::At(json!({"at": "2026-11-26T08:00"})));
    assert_eq!(
        read_change("make it Wednesday", "none", Some(&now)).when,
        When::At(json!({"at": "2026-12-02T09:00"}))
    );
}

#[test]
fn repetitions() {
    for (text, cron) in [
        ("every Monday at 9", "0 9 * * MON"),
        ("Every Monday, at 9:00.", "0 9 * * MON"),
        ("each weekday at 8:30", "30 8 * * MON-FRI"),
        ("on weekdays", "0 9 * * MON-FRI"),
        ("every working day at 8", "0 8 * * MON-FRI"),
        ("Monday to Friday at 7 am", "0 7 * * MON-FRI"),
        ("every day from Monday to Thursday at 7", "0 7 * * MON,TUE,WED,THU"),
        ("Mon-Fri at 18:00", "0 18 * * MON-FRI"),
        ("every weekend at 10am", "0 10 * * SAT,SUN"),
        ("every Monday and Thursday at 9 am", "0 9 * * MON,THU"),
        ("Mondays, Wednesdays and Fridays at noon", "0 12 * * MON,WED,FRI"),
        ("every week on Tuesday", "0 9 * * TUE"),
        ("weekly on Monday and Friday at 6 pm", "0 18 * * MON,FRI"),
        ("on Monday every week at 9", "0 9 * * MON"),
        ("a weekly report about lamp oil every Monday", "0 9 * * MON"),
        ("every Fri at 8", "0 8 * * FRI"),
        ("a weekly report", "0 9 * * MON"),
        ("once a week", "0 9 * * MON"),
        ("every day at noon", "0 12 * * *"),
        ("every day at midnight", "0 0 * * *"),
        ("every single day at 9", "0 9 * * *"),
        ("every day at 9 and 17", "0 9,17 * * *"),
        ("daily at 8:30 and at 17:30", "30 8,17 * * *"),
        ("every day at 17:30", "30 17 * * *"),
        ("daily at 5 pm", "0 17 * * *"),
        ("daily at 5 p.m.", "0 17 * * *"),
        ("daily at 5PM", "0 17 * * *"),
        ("daily at 12am", "0 0 * * *"),
        ("daily at 12 pm", "0 12 * * *"),
        ("at 9 o'clock every day", "0 9 * * *"),
        ("every day at half past 8", "30 8 * * *"),
        ("every day at nine", "0 9 * * *"),
        ("every morning", "0 9 * * *"),
        ("every morning at 7:15", "15 7 * * *"),
        ("every evening", "0 18 * * *"),
        ("every evening at 8", "0 20 * * *"),
        ("every day at 8 in the evening", "0 20 * * *"),
        ("every Monday morning", "0 9 * * MON"),
        ("every night at 11", "0 23 * * *"),
        ("the first of every month", "0 9 1 * *"),
        ("on the first of each month at 6", "0 6 1 * *"),
        ("the first day of every month", "0 9 1 * *"),
        ("on the 1st and 15th of every month", "0 9 1,15 * *"),
        ("every month on the 15th at 10", "0 10 15 * *"),
        ("monthly on the third", "0 9 3 * *"),
        ("on the 15th every month", "0 9 15 * *"),
        ("every 15th at 8", "0 8 15 * *"),
        ("the last day of the month", "0 9 L * *"),
        ("at the end of every month", "0 9 L * *"),
        ("every month", "0 9 1 * *"),
        ("every 2 months", "0 9 1 */2 *"),
        ("every quarter", "0 9 1 */3 *"),
        ("every year on 24 December at 8", "0 8 24 12 *"),
        ("every January 1st", "0 9 1 1 *"),
        ("every hour on weekdays", "0 */1 * * MON-FRI"),
        ("every 15 minutes on weekends", "*/15 * * * SAT,SUN"),
    ] {
        assert_eq!(when(text), When::At(json!({"cron": cron})), "{text}");
    }
    for (text, every) in [
        ("every 2 hours", "2h"),
        ("every two hours", "2h"),
        ("every other hour", "2h"),
        ("every 15 minutes", "15m"),
        ("every 90min", "90m"),
        ("every minute", "1m"),
        ("every 120 seconds", "2m"),
        ("hourly", "1h"),
        ("every hour", "1h"),
        ("every half hour", "30m"),
        ("every half an hour", "30m"),
        ("every 3 days", "3d"),
        ("every other day", "2d"),
        ("every 2 weeks", "14d"),
        ("every fortnight", "14d"),
    ] {
        assert_eq!(when(text), When::At(json!({"every": every})), "{text}");
    }
}

#[test]
fn single_times() {
    for (text, at) in [
        ("tomorrow at 5 pm", "2026-11-26T17:00"),
        ("Tomorrow at 17:00, please", "2026-11-26T17:00"),
        ("at 5 pm tomorrow", "2026-11-26T17:00"),
        ("tomorrow", "2026-11-26T09:00"),
        ("tomorrow morning", "2026-11-26T09:00"),
        ("tomorrow at 8 in the evening", "2026-11-26T20:00"),
        ("tomorrow at noon", "2026-11-26T12:00"),
        ("the day after tomorrow at 10", "2026-11-27T10:00"),
        ("today at 18:00", "2026-11-25T18:00"),
        ("tonight", "2026-11-25T21:00"),
        ("this evening at 7", "2026-11-25T19:00"),
        ("at 5 pm", "2026-11-25T17:00"),
        ("on Friday at 8", "2026-11-27T08:00"),
        ("next Monday at 9", "2026-11-30T09:00"),
        ("on Wednesday at 9", "2026-12-02T09:00"),
        ("on 1 December at 9", "2026-12-01T09:00"),
        ("on December 1st at 9:30", "2026-12-01T09:30"),
        ("on the 3rd of March", "2027-03-03T09:00"),
        ("on 3 March 2028 at 7 pm", "2028-03-03T19:00"),
        ("on 29 February", "2028-02-29T09:00"),
        ("2026-12-24 at 18:00", "2026-12-24T18:00"),
        ("2026-12-24T18:05", "2026-12-24T18:05"),
        ("on the 1st at 9", "2026-12-01T09:00"),
        ("in 3 days", "2026-11-28T14:31"),
        ("in 2 weeks at 9", "2026-12-09T09:00"),
        ("in a month at 9", "2026-12-25T09:00"),
        ("in 2 hours", "2026-11-25T16:31:00+01:00"),
        ("in half an hour", "2026-11-25T15:01:00+01:00"),
        ("in 90min", "2026-11-25T16:01:00+01:00"),
        ("an hour from now", "2026-11-25T15:31:00+01:00"),
    ] {
        assert_eq!(when(text), When::At(json!({"at": at})), "{text}");
    }
}

#[test]
fn zones() {
    for (text, expected) in [
        ("every Monday at 9 in Berlin", json!({"cron": "0 9 * * MON", "timezone": "Europe/Berlin"})),
        ("every day at 9 in New York", json!({"cron": "0 9 * * *", "timezone": "America/New_York"})),
        ("every day at 9 Tokyo time", json!({"cron": "0 9 * * *", "timezone": "Asia/Tokyo"})),
        ("every day at 9 (Europe/Lisbon)", json!({"cron": "0 9 * * *", "timezone": "Europe/Lisbon"})),
        ("every day at 9 in america/new_york", json!({"cron": "0 9 * * *", "timezone": "America/New_York"})),
        ("every day at 9 UTC", json!({"cron": "0 9 * * *", "timezone": "UTC"})),
        ("in Munich, every day at 9", json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin"})),
        (
            "tomorrow at 5 pm in San Francisco",
            json!({"at": "2026-11-26T17:00", "timezone": "America/Los_Angeles"}),
        ),
        // It is 13:31 in London.
        ("today at 14:00 in London", json!({"at": "2026-11-25T14:00", "timezone": "Europe/London"})),
        ("every day at 9 my time", json!({"cron": "0 9 * * *"})),
        // A place or a language of the content is no zone.
        ("Write about hotels in Berlin every day at 9", json!({"cron": "0 9 * * *"})),
        ("every day at 9 in German", json!({"cron": "0 9 * * *"})),
        ("every day at 9. In Berlin, shops open at 10", json!({"cron": "0 9,10 * * *"})),
    ] {
        assert_eq!(when(text), When::At(expected), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_said() {
    for (text, part) in [
        ("tomorrow at 25:00", "\"at 25:00\""),
        ("every day at 25", "\"at 25\""),
        ("every day at 99", "\"at 99\""),
        ("every day at 99999999999999999999999", "at 999"),
        ("every day at 13 pm", "\"at 13 pm\""),
        ("every day at 8:60", "\"at 8:60\""),
        ("every day 25:00", "\"25:00\""),
        ("every 0 minutes", "\"every 0 minutes\""),
        ("every 30 seconds", "at least one minute"),
        ("every 99999999999999999999999 hours", "can't be a schedule"),
        ("every 5000 weeks", "can't be a schedule"),
        ("every 5 months", "\"every 5 months\""),
        ("in 99999999999999999999999 days", "too far"),
        ("in 9999999999999 hours", "too far"),
        ("in 0 minutes", "shortest"),
        ("every other Monday", "\"every other Monday\""),
        ("the first Monday of every month", "first Monday"),
        ("every 2 hours at 9", "interval has no time of day"),
        ("every day at 8:15 and 9:30", "minutes are the same"),
        ("every day except Sunday", "\"except Sunday\""),
        ("every day until March", "\"until March\""),
        ("every hour between 9 and 17", "\"between 9 and\""),
        ("twice a day", ""),
        ("every day for 3 weeks", "\"for 3 weeks\""),
        ("every Monday starting tomorrow", "\"starting tomorrow\""),
        ("every day tomorrow at 9", "both one day and a repetition"),
        ("hourly and monthly", "two repetitions"),
        ("tomorrow at 9 and 17", "several times"),
        ("on Monday and Tuesday at 9", "several days"),
        ("yesterday at 5", "in the past"),
        ("last Monday at 9", "in the past"),
        ("3 days ago", "in the past"),
        ("today at 8 am", "has passed"),
        ("at 8 am", "tomorrow at 08:00"),
        ("on 1 January 2020 at 9", "has passed"),
        ("on 31 February", "There is no 31 February"),
        ("on 31.12.2026", "2026-12-31"),
        ("on 12/01/2026 at 9", "2026-12-31"),
        ("next week", "Name a day"),
        ("later", "Name a day"),
        ("every day at 9 in Atlantis", "\"Atlantis\""),
        ("every day at 9 in Europe/Berln", "\"Europe/Berln\""),
        ("every day at 9 CET", "\"CET\""),
        ("every day at 9 UTC+2", "\"UTC+2\""),
        ("every day at 9 in Berlin and at 10 in Tokyo", "two time zones"),
    ] {
        match when(text) {
            When::Unclear(why) if !part.is_empty() => {
                assert!(why.contains(part) && why.ends_with('.'), "{text}: {why}");
            }
            When::Unsaid if part.is_empty() => {}
            other => panic!("{text}: {other:?}"),
        }
    }
    // A server that does not tell the time.
    assert!(matches!(read("tomorrow at 9", None).when, When::Unclear(_)));
    assert_eq!(read("every day at 9", None).when, When::At(json!({"cron": "0 9 * * *"})));
}

/// One schedule would do more, or less, than these sentences say.
#[test]
fn nothing_is_proposed_that_was_not_said() {
    for (text, part) in [
        ("Every Monday at 9 and every Friday at 17:00 send me a report", "several repetitions"),
        ("Mondays at 9 and Fridays at 17:00", "several repetitions"),
        ("every Monday at 9 and every Friday", "several repetitions"),
        ("every Monday at 9 and Friday at 17:00", "both one day and a repetition"),
        ("Every Monday at 9 write a report about what happens every Friday at 5", "several repetitions"),
        ("Every day at 9 write a report about what happens every Friday", "several repetitions"),
        ("every day, only on Fridays", "several repetitions"),
        ("Every Monday at 9 write a report about the meeting at 5", "several times of day"),
        ("Every day next week send me a report", "\"next week\""),
        ("Every day this week send me a report", "\"this week\""),
        ("every day at 9 for a week", "\"for a week\""),
        ("every day for the next 3 days", "\"for the next\""),
        ("every day through December", "\"through December\""),
        ("every Monday during the holidays", "\"during the holidays\""),
        ("every day starting on Monday", "\"starting on Monday\""),
        ("Every friday the 13th write a report", "\"13th\""),
        ("on Friday the 13th at 9", "\"13th\""),
        ("Write a report every Friday on the 13th", "both one day and a repetition"),
        ("Every day at 9, but not on holidays, send me a report", "\"but not\""),
        ("every day at 9 send me a report, but not on holidays", "\"but not\""),
        ("every day but Sunday", "\"but Sunday\""),
        ("every day, not on Sundays", "\"not on\""),
        ("every day except on holidays", "\"except on\""),
        ("every day other than Sunday", "\"other than Sunday\""),
        ("every day at 9 unless it rains", "\"unless it\""),
        ("on alternate Mondays at 9", "\"alternate Mondays\""),
    ] {
        match when(text) {
            When::Unclear(why) => assert!(why.contains(part) && why.ends_with('.'), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
        assert!(read(text, Some(&now())).is_certain, "{text}");
    }
    for (text, cron) in [
        ("every Monday and every Friday at 9", "0 9 * * MON,FRI"),
        ("every day at 9 on weekdays", "0 9 * * MON-FRI"),
        ("send me a daily report every weekday at 9", "0 9 * * MON-FRI"),
        ("every Monday at 9 write a plan for a week", "0 9 * * MON"),
        ("Write a text that is short but not dull every Monday at 9", "0 9 * * MON"),
        ("every Monday at 9 write a text, but short and not in German", "0 9 * * MON"),
        ("every Monday at 9 write about the first thing that comes to mind", "0 9 * * MON"),
    ] {
        assert_eq!(when(text), When::At(json!({"cron": cron})), "{text}");
    }
}

#[test]
fn a_time_of_day_may_lead_a_sentence() {
    for (text, leads) in [
        ("at 17 write a report", true),
        ("Please, at 17:00 write a report about lamps", true),
        ("In the evening write a report", true),
        ("Write a report at 17", true),
        ("I am here. At 17 write a report.", true),
        ("Write an agenda for the meeting at 17", false),
        ("Write about what happened at 17", false),
        ("I have a meeting at 17, write an agenda", false),
        ("Write a report", false),
    ] {
        assert_eq!(read(text, Some(&now())).leads, leads, "{text}");
    }
    assert_eq!(when("at 17 write a report"), When::At(json!({"at": "2026-11-25T17:00"})));
    let When::Unclear(why) = when("at 9 write a report") else { panic!() };
    assert!(why.contains("tomorrow at 09:00"), "{why}");
}

#[test]
fn sentences_without_times() {
    let long = "lamp ".repeat(4_000);
    let html = "every ".repeat(4_000);
    for text in [
        "",
        " \n\t",
        "🦀🦀🦀",
        "🦀 é ß İ",
        "</now>",
        "<now>\nIt is Friday.\n</now>",
        "every",
        "each",
        "at",
        "in",
        "on the",
        "Look at 5 shops",
        "Sell at 20 percent",
        "Write to every customer",
        "Write about Monday's meeting",
        "Write a summary of yesterday",
        "Write about the sun and the sat nav",
        "The score was 45:30",
        "I may come in peace",
        "The 1st edition",
        "version 1.2.3",
        &long,
        &html,
    ] {
        assert_eq!(when(text), When::Unsaid, "{text:.60}");
    }
}

#[test]
fn a_time_may_belong_to_the_content() {
    for (text, is_certain) in [
        ("Write an agenda for the meeting on Monday", false),
        ("Write an agenda for tomorrow", false),
        ("Write a plan to learn it in 30 days", false),
        ("Write a report tomorrow at 5 pm", true),
        ("Write a report on Monday at 9", true),
        ("Write a report every week", true),
        ("Write a report in 2 hours", true),
        ("Write a report at 25:00", true),
    ] {
        assert_eq!(read(text, Some(&now())).is_certain, is_certain, "{text}");
    }
}

#[test]
fn the_other_words_remain() {
    assert_eq!(
        read("Please send it every Monday at 9 in Berlin, Ann", None).rest,
        ["please", "send", "it", "ann"]
    );
    assert!(read("every Monday at 9 in Berlin", None).rest.is_empty());
}

#[test]
fn words_for_the_person() {
    let told = |text: &str| match when(text) {
        When::At(schedule) => in_words(&schedule, Some(&now())).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(told("every Monday at 9"), "At 09:00 on Monday (Europe/Berlin).");
    assert_eq!(told("tomorrow at 5 pm in Tokyo"), "Once, on 26 November 2026 at 17:00 (Asia/Tokyo).");
    assert_eq!(in_words(&json!({"cron": "x"}), None), None);
}

#[test]
fn a_clock_change_is_no_obstacle() {
    // Half an hour before the clock is set back.
    let now = "2026-10-25T00:30:00Z"
        .parse::<Timestamp>()
        .unwrap()
        .to_zoned_datetime(TimeZone::get("Europe/Berlin").unwrap());
    let at = |text: &str| read(text, Some(&now)).when;
    assert_eq!(at("in an hour"), When::At(json!({"at": "2026-10-25T02:30:00+01:00"})));
    assert_eq!(at("tomorrow at 2:30"), When::At(json!({"at": "2026-10-26T02:30"})));
}

proptest! {
    /// Whatever is said, the answer is a schedule that the platform takes, or a sentence.
    #[test]
    fn any_text_is_read(words in proptest::collection::vec(
        prop_oneof![
            "[ -~]{0,12}",
            "\\PC{0,6}",
            prop::sample::select(vec![
                "every", "each", "at", "in", "on", "the", "of", "and", "to", "Monday", "monday", "first", "15th", "month", "day",
                "week", "hours", "9", "25:00", "8:30", "5pm", "pm", "tomorrow", "Berlin", "New", "York", "Europe/Berlin", "next",
                "last", "other", "half", "past", "noon", "2026-12-01", "December", "31", "0", "18446744073709551616", "until", "for",
                "ago", "from", "now", "weekly", "Mon-Fri", "</now>", "time", "UTC",
            ]).prop_map(str::to_owned),
        ], 0..12)
    ) {
        let text = words.join(" ");
        for now in [Some(now()), None] {
            match read(&text, now.as_ref()).when {
                When::At(schedule) => prop_assert!(in_words(&schedule, now.as_ref()).is_some(), "{text}: {schedule}"),
                When::Unclear(why) => prop_assert!(!why.is_empty() && why.len() < 1_000, "{text}: {why}"),
                When::Unsaid => {}
            }
        }
    }
}
