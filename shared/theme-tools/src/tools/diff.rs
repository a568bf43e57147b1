//! The difference of two texts, line by line.

use rustc_hash::FxHashMap;

/// The lines around a change that are shown.
const CONTEXT: usize = 3;
/// Gaps between equal lines are compared again at most so many times.
const MAX_DEPTH: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Left,
    Right,
}

/// Unified hunks. `None` if the texts are equal. The lines that occur once in both texts decide what is equal, so the time is almost
/// linear, and the difference is right but not always the shortest.
pub fn unified(left: &str, right: &str) -> Option<Vec<String>> {
    if left == right {
        return None;
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (left.split('\n').collect(), right.split('\n').collect());
    let mut script = Vec::new();
    compare(&a, &b, (0, 0), 0, &mut script);
    Some(hunks(&a, &b, &script))
}

/// Adds the script that makes `b` of `a`: what each step does, and the lines' numbers.
fn compare(
    a: &[&str],
    b: &[&str],
    from: (usize, usize),
    depth: usize,
    script: &mut Vec<(Side, usize, usize)>,
) {
    let before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (&a[before..], &b[before..]);
    let after = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    script.extend((0..before).map(|at| (Side::Both, from.0 + at, from.1 + at)));
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - after], &rest_b[..rest_b.len() - after]);
    let base = (from.0 + before, from.1 + before);
    let anchors = if depth < MAX_DEPTH { anchors(mid_a, mid_b) } else { Vec::new() };
    if anchors.is_empty() {
        script.extend((0..mid_a.len()).map(|at| (Side::Left, base.0 + at, base.1)));
        script.extend((0..mid_b.len()).map(|at| (Side::Right, base.0 + mid_a.len(), base.1 + at)));
    } else {
        let (mut i, mut j) = (0, 0);
        for (x, y) in anchors {
            compare(&mid_a[i..x], &mid_b[j..y], (base.0 + i, base.1 + j), depth + 1, script);
            script.push((Side::Both, base.0 + x, base.1 + y));
            (i, j) = (x + 1, y + 1);
        }
        compare(&mid_a[i..], &mid_b[j..], (base.0 + i, base.1 + j), depth + 1, script);
    }
    let end = (base.0 + mid_a.len(), base.1 + mid_b.len());
    script.extend((0..after).map(|at| (Side::Both, end.0 + at, end.1 + at)));
}

/// The longest rising list of lines that occur once on each side.
fn anchors(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let mut places: FxHashMap<&str, (usize, usize, usize, usize)> = FxHashMap::default();
    for (at, line) in a.iter().enumerate() {
        let place = places.entry(line).or_default();
        (place.0, place.1) = (place.0 + 1, at);
    }
    for (at, line) in b.iter().enumerate() {
        let place = places.entry(line).or_default();
        (place.2, place.3) = (place.2 + 1, at);
    }
    let mut pairs: Vec<(usize, usize)> = places
        .values()
        .filter(|place| place.0 == 1 && place.2 == 1)
        .map(|place| (place.1, place.3))
        .collect();
    pairs.sort_unstable();
    // The last pair of the best list of each length, and each pair's predecessor.
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&tail| pairs[tail].1 < pair.1);
        if length > 0 {
            before[index] = tails[length - 1];
        }
        if length == tails.len() { tails.push(index) } else { tails[length] = index }
    }
    let mut chosen = Vec::new();
    let mut at = tails.last().copied().unwrap_or(usize::MAX);
    while let Some(pair) = pairs.get(at) {
        chosen.push(*pair);
        at = before[at];
    }
    chosen.reverse();
    chosen
}

fn hunks(a: &[&str], b: &[&str], script: &[(Side, usize, usize)]) -> Vec<String> {
    let mut lines = Vec::new();
    let changes: Vec<usize> = (0..script.len()).filter(|&at| script[at].0 != Side::Both).collect();
    let mut next = 0;
    while next < changes.len() {
        let mut last = next;
        while last + 1 < changes.len() && changes[last + 1] - changes[last] <= 2 * CONTEXT {
            last += 1;
        }
        let from = changes[next].saturating_sub(CONTEXT);
        let to = (changes[last] + CONTEXT + 1).min(script.len());
        let part = &script[from..to];
        let (left, right) = (
            part.iter().filter(|step| step.0 != Side::Right).count(),
            part.iter().filter(|step| step.0 != Side::Left).count(),
        );
        // As in unified diffs, an empty side begins at the line before.
        let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
        let (x, y) = (start(part[0].1, left), start(part[0].2, right));
        lines.push(format!("@@ -{x},{left} +{y},{right} @@"));
        for &(side, i, j) in part {
            lines.push(match side {
                Side::Both => format!(" {}", a[i]),
                Side::Left => format!("-{}", a[i]),
                Side::Right => format!("+{}", b[j]),
            });
        }
        next = last + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_three_lines_around_them() {
        let check = |left: &str, right: &str, expected: &[&str]| {
            assert_eq!(unified(left, right).unwrap_or_default(), expected, "{left:?} {right:?}");
        };
        check("a\nb", "a\nb", &[]);
        check("a\nb\nc", "a\nx\nc", &["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]);
        check("a\nc", "a\nb\nc", &["@@ -1,2 +1,3 @@", " a", "+b", " c"]);
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12",
            "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11",
            &["@@ -1,3 +1,4 @@", "+0", " 1", " 2", " 3", "@@ -9,4 +10,3 @@", " 9", " 10", " 11", "-12"],
        );
        check("x\nx\nq\nx", "x\nq\nx\nx", &["@@ -1,4 +1,4 @@", " x", "-x", " q", "+x", " x"]);
    }

    /// Reading the lines of each side from the script gives the texts.
    #[test]
    fn a_script_has_both_texts() {
        let mut seed = 7_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for round in 0..300 {
            let mut text = |letters| (0..next(30)).map(|_| next(letters).to_string()).collect::<Vec<_>>();
            let (left, right) = (text(2 + round % 20), text(2 + round % 20));
            let a: Vec<&str> = left.iter().map(String::as_str).collect();
            let b: Vec<&str> = right.iter().map(String::as_str).collect();
            let mut script = Vec::new();
            compare(&a, &b, (0, 0), 0, &mut script);
            let side = |not: Side| script.iter().filter(move |step| step.0 != not);
            assert_eq!(side(Side::Right).map(|step| a[step.1]).collect::<Vec<_>>(), a);
            assert_eq!(side(Side::Left).map(|step| b[step.2]).collect::<Vec<_>>(), b);
            assert!(script.iter().all(|&(side, i, j)| side != Side::Both || a[i] == b[j]));
        }
    }
}
