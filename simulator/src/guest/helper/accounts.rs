//! The accounts of a Devbox: the host's with the Devbox's user among them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::guest::spec::User;

/// Makes `user` known under `root/etc`, starting from the files in `template/etc`;
/// it may use sudo without a password where the host has sudo.
pub(super) fn add_account(template: &Path, root: &Path, user: &User) -> io::Result<()> {
    let (name, uid, home) = (&user.name, user.uid, &user.home);
    let lines = [
        (
            "etc/passwd",
            format!("{name}:x:{uid}:{uid}::{home}:/bin/bash"),
        ),
        ("etc/group", format!("{name}:x:{uid}:")),
    ];
    for (file, line) in lines {
        let known = fs::read_to_string(template.join(file)).unwrap_or_default();
        if let Some(content) = with_line(&known, &line) {
            fs::write(root.join(file), content)?;
        }
    }
    if uid != 0 && template.join("etc/sudoers.d").is_dir() {
        let rule = root.join("etc/sudoers.d").join("runloop-simulator");
        fs::create_dir_all(root.join("etc/sudoers.d"))?;
        fs::write(&rule, format!("{name} ALL=(ALL:ALL) NOPASSWD: ALL\n"))?;
        fs::set_permissions(&rule, fs::Permissions::from_mode(0o440))?;
    }
    Ok(())
}

/// `known` with `line` behind its first line, so that it is found before another account
/// of the same number; `None` if that name is there with that number already.
fn with_line(known: &str, line: &str) -> Option<String> {
    let key = |line: &str| {
        let mut fields = line.split(':').map(str::to_owned);
        (fields.next(), fields.nth(1))
    };
    let (name, _) = key(line);
    if known.lines().any(|other| key(other) == key(line)) {
        return None;
    }
    let mut others = known.lines().filter(|other| key(other).0 != name);
    let first = others.next();
    let all: Vec<&str> = first.into_iter().chain([line]).chain(others).collect();
    Some(all.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::with_line;

    #[test]
    fn an_account_is_found_before_another_of_its_number() {
        let known = "root:x:0:0::/root:/bin/sh\nother:x:1000:1000::/home/other:/bin/sh\n";
        let content = with_line(known, "user:x:1000:1000::/home/user:/bin/bash").unwrap();
        let names: Vec<_> = content
            .lines()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(names, ["root", "user", "other"]);
    }

    #[test]
    fn an_account_of_the_same_name_gives_way_and_the_same_account_stays() {
        let known = "root:x:0:0::/root:/bin/sh\nuser:x:7:7::/home/user:/bin/sh\n";
        let content = with_line(known, "user:x:1000:1000::/home/user:/bin/bash").unwrap();
        assert_eq!(content.matches("user:x:").count(), 1);
        assert_eq!(
            with_line(&content, "user:x:1000:1000::/elsewhere:/bin/sh"),
            None
        );
    }
}
