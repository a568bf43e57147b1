//! Tests that need something that this machine may not have.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

/// Says why a test does nothing here. The test returns after it and passes.
///
/// # Panics
/// If `REQUIRE_ALL` is `1`, as in CI, which installs everything that the tests need. There a test that is skipped is a fault.
#[track_caller]
pub fn skipped(reason: impl Display) {
    assert!(
        std::env::var_os("REQUIRE_ALL").is_none_or(|all| all != "1"),
        "with REQUIRE_ALL=1, no test may be skipped: {reason}"
    );
    println!("skipped: {reason}");
}

/// Whether `.ci/run` has installed this. If not, it says so with [`skipped`].
///
/// # Panics
/// As [`skipped`].
#[track_caller]
#[must_use]
pub fn installed(path: &Path) -> bool {
    let is_there = path.exists();
    if !is_there {
        skipped(format_args!("{} is not there; `.ci/run` installs it", path.display()));
    }
    is_there
}

/// Mounts a disk of this size, in memory, on a folder. If it returns `false`, this process may not mount.
///
/// # Panics
/// If `REQUIRE_ALL` is `1` and the system gives this process the right to mount.
#[track_caller]
#[must_use]
pub fn disk_mounted(folder: &Path, megabytes: u32) -> bool {
    let size = format!("size={megabytes}m");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
    let is_mounted = mount.as_ref().is_ok_and(|output| output.status.success());
    if !is_mounted && may_mount() {
        skipped(format_args!("a small disk cannot be mounted: {mount:?}"));
    } else if !is_mounted {
        // It is no fault with REQUIRE_ALL=1 either: no program can install this right, and many containers do not have it.
        println!(
            "skipped: a small disk needs the right to mount, which root has outside of most containers: {mount:?}"
        );
    }
    is_mounted
}

/// Whether Linux gives this process the capability `CAP_SYS_ADMIN`. Elsewhere `false`.
fn may_mount() -> bool {
    /// The number of the capability in <linux/capability.h>.
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_some_and(|mask| mask >> SYS_ADMIN & 1 == 1)
}
