//! The host's mounts that a Devbox shall see besides its root: other disks, not the
//! kernel's own file systems.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// File systems that hold files of the host.
const STORAGE: [&str; 16] = [
    "9p", "bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "nfs", "nfs4",
    "overlay", "squashfs", "virtiofs", "xfs", "zfs",
];

/// Directories that a Devbox has of its own.
const OWN: [&str; 8] = [
    "/dev", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp",
];

/// The directories that other file systems of the host are mounted on, opened, in the
/// order in which they were mounted. `hidden` and what lies below is left out.
pub(super) fn storage_mounts(hidden: Option<&Path>) -> io::Result<Vec<(File, PathBuf)>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let shown = |target: &PathBuf| {
        let is_own = OWN.iter().any(|own| target.starts_with(own));
        let is_hidden = hidden.is_some_and(|hidden| target.starts_with(hidden));
        target != Path::new("/") && !is_own && !is_hidden
    };
    let targets = table.lines().filter_map(storage_target).filter(shown);
    let open = |target: PathBuf| {
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY);
        // A mounted file, or one that is hidden by a later mount.
        options.open(&target).ok().map(|opened| (opened, target))
    };
    Ok(targets.filter_map(open).collect())
}

/// Where a line's file system is mounted, if it holds files of the host.
/// "ID PARENT DEVICE ROOT TARGET OPTIONS [TAG...] - KIND SOURCE OPTIONS"
fn storage_target(line: &str) -> Option<PathBuf> {
    let (place, file_system) = line.split_once(" - ")?;
    let kind = file_system.split(' ').next()?;
    let target = place.split(' ').nth(4)?;
    STORAGE
        .contains(&kind)
        .then(|| PathBuf::from(unescape(target)))
}

/// Blanks, tabs, newlines and backslashes stand as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escaped, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(escaped, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{PathBuf, storage_target};

    #[test]
    fn only_file_systems_that_hold_files_count() {
        let disk = r"36 35 98:0 / /mnt/a\040b rw,noatime shared:1 - ext4 /dev/sdb1 rw";
        assert_eq!(storage_target(disk), Some(PathBuf::from("/mnt/a b")));
        assert_eq!(storage_target("22 1 0:5 / /proc rw - proc proc rw"), None);
        assert_eq!(storage_target(""), None);
    }
}
