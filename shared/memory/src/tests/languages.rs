//! Small questions in many languages. All texts of all languages are in one index.

use super::*;

/// Language, text, and questions that this text answers best.
const TEXTS: &[(&str, &str, &[&str])] = &[
    (
        "en-1",
        "My sister Ruth moved to Lisbon in the spring.",
        &["Where does my sister live?", "When did Ruth move?"],
    ),
    (
        "en-2",
        "The plumber will repair the leaking kitchen tap.",
        &["Who repairs the taps?", "leak in the kitchen"],
    ),
    ("en-3", "I am allergic to walnuts and almonds.", &["What allergies do I have?", "walnut allergy"]),
    (
        "de-1",
        "Unsere Katze heißt Minka und schläft auf dem Ofen.",
        &["Wie heißt die Katze?", "Wo schlafen Katzen?"],
    ),
    (
        "de-2",
        "Die Größe des neuen Schranks ist zwei Meter.",
        &["Wie groß ist der Schrank?", "groesse des schrankes"],
    ),
    (
        "de-3",
        "Für den Geburtstag backe ich einen Apfelkuchen mit Zimt.",
        &["Was habe ich zum Geburtstag gebacken?", "Apfelkuchen"],
    ),
    (
        "fr-1",
        "Mon frère répare des vélos dans un atelier à Lyon.",
        &["Où est l'atelier de vélo ?", "réparation velos"],
    ),
    (
        "fr-2",
        "Nous avons réservé les billets pour l'opéra.",
        &["Qui a réservé un billet ?", "billets d'opera"],
    ),
    (
        "es-1",
        "Mi abuela cocina paella todos los domingos.",
        &["¿Qué cocinaba la abuela?", "paellas de los domingos"],
    ),
    (
        "es-2",
        "El niño perdió su mochila en la estación.",
        &["¿Dónde perdieron las mochilas?", "nino mochila"],
    ),
    (
        "it-1",
        "Il medico ha cambiato la medicina per la pressione.",
        &["Quali medicine ha cambiato il medico?"],
    ),
    ("pt-1", "As crianças aprenderam a nadar na piscina.", &["Onde a criança aprendeu a nadar?"]),
    ("nl-1", "De fietsen staan in de schuur achter het huis.", &["Waar staat mijn fiets?"]),
    ("sv-1", "Nycklarna ligger i den blå lådan.", &["Var ligger nyckeln?"]),
    ("tr-1", "Arabanın lastiklerini değiştirdim.", &["Araba lastikleri"]),
    ("ru-1", "Моя собака боится громкой музыки.", &["Чего боится собака?", "музыка и собаки"]),
    ("el-1", "Το αεροπλάνο φεύγει το πρωί από την Αθήνα.", &["Πότε φεύγει το αεροπλάνο;"]),
    ("ar-1", "اشتريت سيارة حمراء من المعرض", &["ما لون السيارة؟"]),
    ("he-1", "הרופאה ביקשה בדיקת דם", &["בדיקת דם"]),
    ("hi-1", "मेरी बहन दिल्ली में अध्यापिका है।", &["दिल्ली में कौन है?"]),
    ("zh-1", "我上个月在上海买了一台钢琴。", &["钢琴是在哪里买的？", "上海"]),
    ("zh-2", "医生说我对青霉素过敏。", &["我对什么药过敏？", "青霉素"]),
    ("ja-1", "来週、京都の祖母に会いに行きます。", &["祖母はどこに住んでいますか", "京都"]),
    ("ja-2", "コーヒーより紅茶が好きです。", &["紅茶とコーヒー", "ｺｰﾋｰ"]),
    ("ko-1", "여동생은 부산에서 간호사로 일해요.", &["여동생이 어디서 일해요?", "부산"]),
    ("ko-2", "지난주에 자전거를 잃어버렸어요.", &["자전거는 어디에 있어요?"]),
    ("th-1", "แมวของฉันชอบกินปลาทูน่า", &["แมวชอบกินอะไร", "ปลาทูน่า"]),
];

#[test]
fn questions_find_their_texts_in_every_language() {
    let parts =
        TEXTS.iter().map(|(key, text, _)| part(&format!("part {key}"), vec![said(key, "", "", text)]));
    let index = index(parts);
    let mut asked = 0;
    let mut wrong = Vec::new();
    for (key, _, questions) in TEXTS {
        for question in *questions {
            asked += 1;
            let found = found(&index, &query(question));
            if found.first().map(String::as_str) != Some(key) {
                wrong.push(format!("{question} should find {key}, and found {found:?}"));
            }
        }
    }
    assert!(asked >= 36, "{asked} questions");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_question_finds_texts_of_its_language_in_an_english_index() {
    let index = index([
        part("a", vec![said("1", "", "", "Die Wohnungen in der Stadt sind teuer geworden.")]),
        part("b", vec![said("2", "", "", "We looked at three flats and liked the second one.")]),
        part("c", vec![said("3", "", "", "The weather was fine, so we walked along the river.")]),
    ]);
    assert_eq!(found(&index, &query("Ist eine Wohnung teuer?"))[0], "1");
    assert_eq!(found(&index, &query("flat"))[0], "2");
}

/// What a memory says besides: most of it has the frequent words.
fn everyday(count: usize) -> Vec<Part> {
    const SENTENCES: [&str; 6] = [
        "Ruth visited us in the garden and it was warm.",
        "We go to the market with them when it rains.",
        "Wir waren in der Stadt und haben ein Brot gekauft.",
        "As chaves estavam nas caixas e não nas gavetas.",
        "Compré una mesa y una silla para la cocina.",
        "Who was at the door, and what did he tell us?",
    ];
    let text = |n: usize| format!("{} Number {n}.", SENTENCES[n % SENTENCES.len()]);
    let document = |n: usize| said(&format!("e{n}"), "", "", &text(n));
    (0..count).map(|n| part(&format!("every {n}"), vec![document(n)])).collect()
}

#[test]
fn a_frequent_word_that_is_rare_in_a_memory_is_found() {
    const MEANT: &[(&str, &str, &[&str])] = &[
        ("nas", "The new NAS is in the cellar.", &["NAS", "nas", "Where is the NAS?", "Onde está o NAS?"]),
        ("us", "My visa for the US expires soon.", &["US", "the US", "What about the US?"]),
        ("it", "Petra works in IT since spring.", &["IT", "Who is in IT?"]),
        ("una", "Una called about the boat.", &["Una", "una", "Where is Una?"]),
        ("go", "The parser is written in Go.", &["Go", "What is in Go?"]),
        ("r", "In the evening I learn R with a friend.", &["R", "r", "Do I learn R?"]),
        ("who", "I have tickets for The Who.", &["The Who", "the who"]),
    ];
    for count in [20, 600] {
        let texts =
            MEANT.iter().map(|(key, text, _)| part(&format!("part {key}"), vec![said(key, "", "", text)]));
        let index = index(texts.chain(everyday(count)));
        let mut wrong = Vec::new();
        for (key, _, questions) in MEANT {
            for question in *questions {
                let found = found(&index, &query(question));
                if found.first().map(String::as_str) != Some(key) {
                    wrong.push(format!("{question} should find {key} of {count}, and found {found:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        // Where nothing is meant, nothing is found.
        for question in ["What about it?", "who", "Was ist das?", "And then?", "¿Y la otra?"] {
            let found = found(&index, &query(question));
            assert!(
                found.iter().all(|key| MEANT.iter().any(|(meant, ..)| meant == key)),
                "{question}: {found:?}"
            );
        }
    }
}

#[test]
fn frequent_words_of_other_namespaces_change_nothing() {
    let own = || vec![part("own", vec![said("1", "", "", "My visa for the US expires soon.")])];
    let other = Part {
        namespace: "work".to_owned(),
        ..part(
            "other",
            (0..9).map(|n| said(&format!("o{n}"), "", "", "The US office of US sales.")).collect(),
        )
    };
    let mine = Query { namespace: Some(""), ..query("US") };
    let alone = index(own());
    let together = index(own().into_iter().chain([other]));
    assert_eq!(found(&together, &mine), ["1"]);
    assert_eq!(alone.search(&mine).hits, together.search(&mine).hits);
}
