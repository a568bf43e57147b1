//! Which lines of two texts differ.

use std::ops::Range;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Lines of the old text, and the lines that take their place in the new text. Both count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the old text. Empty if lines are only added.
    pub old: Range<usize>,
    /// The lines of the new text. Empty if lines are only removed.
    pub new: Range<usize>,
}

/// The most steps of an exact comparison of a part. A part that differs more is split at lines that both texts have once.
const MOST_STEPS: usize = 64;
/// How often parts are split. What still differs then is replaced whole, so that hostile texts take linear time.
const MOST_SPLITS: usize = 12;

/// The hunks that turn `old` into `new`, in order. Between two hunks there is at least one line that both have.
#[must_use]
pub fn hunks<T: Eq + std::hash::Hash + Copy>(old: &[T], new: &[T]) -> Vec<Hunk> {
    // Most edits change few lines, so the equal ones at both ends are not even hashed.
    let (Range { start: head, end: old_end }, Range { end: new_end, .. }) =
        trimmed(old, new, 0..old.len(), 0..new.len());
    // Lines were only added, or only removed, or none.
    if head == old_end || head == new_end {
        let hunk = Hunk { old: head..old_end, new: head..new_end };
        return if old_end == new_end { Vec::new() } else { vec![hunk] };
    }
    let (a, b) = (&old[head..old_end], &new[head..new_end]);
    // One line took the place of others, or others took its place.
    if let ([line], others) | (others, [line]) = (a, b)
        && !others.contains(line)
    {
        return vec![Hunk { old: head..old_end, new: head..new_end }];
    }
    // To compare lines as they are takes less time than to number them, unless many differ.
    let found = shortest(a, b).unwrap_or_else(|| by_parts(a, b));
    let mut joined: Vec<Hunk> = Vec::with_capacity(found.len());
    for Hunk { old, new } in found {
        let hunk = Hunk { old: old.start + head..old.end + head, new: new.start + head..new.end + head };
        match joined.last_mut() {
            Some(last) if last.old.end == hunk.old.start && last.new.end == hunk.new.start => {
                last.old.end = hunk.old.end;
                last.new.end = hunk.new.end;
            }
            _ => joined.push(hunk),
        }
    }
    joined
}

/// The hunks of two texts that differ so much that [`shortest`] finds none, in order. Hunks may touch.
fn by_parts<T: Eq + std::hash::Hash + Copy>(old: &[T], new: &[T]) -> Vec<Hunk> {
    let most = old.len() + new.len();
    let mut ids: FxHashMap<T, u32> = FxHashMap::with_capacity_and_hasher(most, FxBuildHasher);
    let mut number = |line: &T| {
        let next = ids.len() as u32;
        *ids.entry(*line).or_insert(next)
    };
    let a: Vec<u32> = old.iter().map(&mut number).collect();
    let b: Vec<u32> = new.iter().map(&mut number).collect();
    let mut found: Vec<Hunk> = Vec::new();
    let mut parts = vec![(0..a.len(), 0..b.len(), 0)];
    while let Some((old, new, depth)) = parts.pop() {
        let (old, new) = trimmed(&a, &b, old, new);
        if old.is_empty() && new.is_empty() {
            continue;
        }
        if old.is_empty() || new.is_empty() {
            found.push(Hunk { old, new });
        } else if depth > 0
            && let Some(hunks) = shortest(&a[old.clone()], &b[new.clone()])
        {
            found.extend(hunks.into_iter().map(|hunk| Hunk {
                old: hunk.old.start + old.start..hunk.old.end + old.start,
                new: hunk.new.start + new.start..hunk.new.end + new.start,
            }));
        } else {
            let anchors =
                if depth < MOST_SPLITS { anchors(&a, &b, old.clone(), new.clone()) } else { Vec::new() };
            if anchors.is_empty() {
                found.push(Hunk { old, new });
                continue;
            }
            let (mut from, mut to) = (old.start, new.start);
            for (i, j) in anchors {
                parts.push((from..i, to..j, depth + 1));
                (from, to) = (i + 1, j + 1);
            }
            parts.push((from..old.end, to..new.end, depth + 1));
        }
    }
    found.sort_by_key(|hunk| (hunk.old.start, hunk.new.start));
    found
}

/// The parts without the lines that are equal at both ends.
fn trimmed<T: Eq>(
    a: &[T],
    b: &[T],
    mut old: Range<usize>,
    mut new: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    let head = a[old.clone()].iter().zip(&b[new.clone()]).take_while(|(x, y)| x == y).count();
    old.start += head;
    new.start += head;
    let tail =
        a[old.clone()].iter().rev().zip(b[new.clone()].iter().rev()).take_while(|(x, y)| x == y).count();
    old.end -= tail;
    new.end -= tail;
    (old, new)
}

/// The lines that both parts have once, as far as they stand in the same order.
fn anchors(a: &[u32], b: &[u32], old: Range<usize>, new: Range<usize>) -> Vec<(usize, usize)> {
    // How often the old and the new part have the line, and where.
    let mut counts: FxHashMap<u32, (u32, u32, usize, usize)> = FxHashMap::default();
    for at in old.clone() {
        let entry = counts.entry(a[at]).or_default();
        (entry.0, entry.2) = (entry.0 + 1, at);
    }
    for at in new {
        if let Some(entry) = counts.get_mut(&b[at]) {
            (entry.1, entry.3) = (entry.1 + 1, at);
        }
    }
    let pairs: Vec<(usize, usize)> = old
        .filter_map(|at| counts.get(&a[at]).filter(|entry| entry.0 == 1 && entry.1 == 1).map(|e| (e.2, e.3)))
        .collect();
    // The longest run of pairs whose second numbers rise.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let place = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before[index] = place.checked_sub(1).map(|last| ends[last]);
        if place == ends.len() {
            ends.push(index);
        } else {
            ends[place] = index;
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        found.push(pairs[index]);
        next = before[index];
    }
    found.reverse();
    found
}

/// The fewest changes, by Myers' greedy algorithm, if at most [`MOST_STEPS`] lines differ.
fn shortest<T: Eq>(a: &[T], b: &[T]) -> Option<Vec<Hunk>> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let most = (n + m).min(MOST_STEPS as isize);
    if (n - m).abs() > most {
        return None;
    }
    let slot = |k: isize| (k + most + 1) as usize;
    let mut reach = vec![0_isize; slot(most + 1) + 1];
    // The reach before each step, as far as the step reads it: see `trailed`.
    let mut trail: Vec<isize> = Vec::new();
    for d in 0..=most {
        trail.extend_from_slice(&reach[slot(-d - 1)..=slot(d + 1)]);
        for k in (-d..=d).step_by(2) {
            let mut x = if k == -d || (k != d && reach[slot(k - 1)] < reach[slot(k + 1)]) {
                reach[slot(k + 1)]
            } else {
                reach[slot(k - 1)] + 1
            };
            while x < n && x - k < m && x - k >= 0 && a[x as usize] == b[(x - k) as usize] {
                x += 1;
            }
            reach[slot(k)] = x;
            if x >= n && x - k >= m {
                return Some(walked_back(&trail, d, n, m));
            }
        }
    }
    None
}

/// Where a trail has the reach of diagonal `k` before step `d`. Step `d` reads the diagonals from `-d - 1` to `d + 1`.
fn trailed(d: isize, k: isize) -> usize {
    (d * (d + 2) + k + d + 1) as usize
}

fn walked_back(trail: &[isize], steps: isize, n: isize, m: isize) -> Vec<Hunk> {
    let (mut x, mut y) = (n, m);
    let mut found: Vec<Hunk> = Vec::new();
    for d in (1..=steps).rev() {
        let k = x - y;
        let is_down = k == -d || (k != d && trail[trailed(d, k - 1)] < trail[trailed(d, k + 1)]);
        let from_k = if is_down { k + 1 } else { k - 1 };
        let from_x = trail[trailed(d, from_k)];
        let from_y = from_x - from_k;
        // The step, before the equal lines that follow it.
        let (old, new) =
            if is_down { (from_x..from_x, from_y..from_y + 1) } else { (from_x..from_x + 1, from_y..from_y) };
        found.push(Hunk {
            old: old.start as usize..old.end as usize,
            new: new.start as usize..new.end as usize,
        });
        (x, y) = (from_x, from_y);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &[&str], new: &[&str]) -> Vec<Hunk> {
        let found = hunks(old, new);
        let mut made: Vec<&str> = Vec::new();
        let mut at = 0;
        for hunk in &found {
            assert!(hunk.old.start >= at);
            made.extend(&old[at..hunk.old.start]);
            made.extend(&new[hunk.new.clone()]);
            at = hunk.old.end;
        }
        made.extend(&old[at..]);
        assert_eq!(made, new, "{old:?} {new:?}");
        found
    }

    #[test]
    fn hunks_turn_one_text_into_the_other() {
        assert_eq!(check(&["a", "b"], &["a", "b"]), []);
        assert_eq!(check(&["a", "b", "c"], &["a", "x", "c"]), [Hunk { old: 1..2, new: 1..2 }]);
        assert_eq!(check(&[], &["a"]), [Hunk { old: 0..0, new: 0..1 }]);
        assert_eq!(check(&["a"], &[]), [Hunk { old: 0..1, new: 0..0 }]);
        assert_eq!(
            check(&["a", "b", "c", "d"], &["b", "c", "x", "d"]),
            [Hunk { old: 0..1, new: 0..0 }, Hunk { old: 3..3, new: 2..3 }]
        );
        check(&["a", "b", "c", "a", "b", "b", "a"], &["c", "b", "a", "b", "a", "c"]);
    }

    #[test]
    fn texts_that_differ_much_are_split_at_lines_that_both_have_once() {
        let old: Vec<String> =
            (0..400).map(|n| if n % 4 == 0 { format!("k{n}") } else { format!("o{n}") }).collect();
        let new: Vec<String> =
            (0..400).map(|n| if n % 4 == 0 { format!("k{n}") } else { format!("n{n}") }).collect();
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
        assert_eq!(check(&old, &new).len(), 100);
    }
}
