//! Files read and written by scripts.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use beachside_runloop::shell::{
    FileContent, FileFault, READ_INLINE_LIMIT_BYTES, WRITE_INLINE_LIMIT_BYTES,
};
use proptest::prelude::*;

use crate::file_harness::{each, guest, mode_of, probe, read, scraps, try_write, write};
use crate::harness::SHELLS;

#[test]
fn r24_h1_h2_every_size_is_read_back_as_it_was_written() {
    let limit = WRITE_INLINE_LIMIT_BYTES;
    let read_limit = usize::try_from(READ_INLINE_LIMIT_BYTES).unwrap();
    let noise: Vec<u8> = (0..1_200_000_u32)
        .map(|number| (number * 31 / 7) as u8)
        .collect();
    for guest in each() {
        for size in [
            0,
            1,
            18_000,
            18_001,
            limit - 1,
            limit,
            limit + 1,
            read_limit + 1,
            98_305,
            131_072,
            1_048_576,
        ] {
            let content = noise.get(..size).unwrap();
            write(&guest, "sized", content);
            assert!(
                fs::read(guest.home().join("sized")).unwrap() == content,
                "{:?} {size}",
                guest.shell
            );
            assert!(
                read(&guest, "sized").unwrap() == content,
                "{:?} {size}",
                guest.shell
            );
            let is_large = matches!(probe(&guest, "sized"), Ok(FileContent::Large { .. }));
            assert_eq!(is_large, size > read_limit);
        }
        write(&guest, "sized", b"");
        assert_eq!(fs::metadata(guest.home().join("sized")).unwrap().len(), 0);
        assert_eq!(scraps(&guest.home()), Vec::<PathBuf>::new());
    }
}

#[test]
fn h3_binary_content_stays_binary() {
    let png = b"\x89PNG\r\n\x1a\n".as_slice();
    let all: Vec<u8> = (0..=255).collect();
    for guest in each() {
        for content in [
            png,
            &all,
            b"\xef\xbb\xbfmark",
            b"a\r\nb\r\n",
            b"\x80",
            b"\0",
            b"x\n\n\n",
        ] {
            write(&guest, "binary", content);
            assert_eq!(
                read(&guest, "binary").unwrap(),
                content,
                "{:?}",
                guest.shell
            );
        }
    }
}

#[test]
fn h7_odd_names_are_exact() {
    let longest = "x".repeat(255);
    let names = [
        "a b",
        "-rf",
        "re\"port",
        "r'x",
        "back\\",
        "new\nline",
        "100%",
        "%20",
        "\u{e9}",
        "e\u{301}",
        "日本",
        "*",
        "$HOME",
        "~",
        "trailing ",
        "end\n",
        "-",
        "--",
        "!x",
        "`id`",
        "$(id)",
        "{a,b}",
        "#",
        "&",
        ";",
        "|",
        "?",
        "[a]",
        ".hidden",
        "Permission denied",
        longest.as_str(),
    ];
    for guest in each() {
        for (number, name) in names.iter().enumerate() {
            let content = format!("content {number}");
            write(&guest, name, content.as_bytes());
            write(
                &guest,
                &format!("dir {name}/{name}")
                    .chars()
                    .take(120)
                    .collect::<String>(),
                b"x",
            );
            assert_eq!(
                fs::read_to_string(guest.home().join(name)).unwrap(),
                content,
                "{:?} {name}",
                guest.shell
            );
        }
        for (number, name) in names.iter().enumerate() {
            let expected = format!("content {number}").into_bytes();
            assert_eq!(
                read(&guest, name).unwrap(),
                expected,
                "{:?} {name}",
                guest.shell
            );
            let absolute = guest.home().join(name).to_str().unwrap().to_owned();
            assert_eq!(read(&guest, &absolute).unwrap(), expected);
        }
        let long = vec![b'y'; 100_000];
        write(&guest, "~", &long);
        let expected = guest.home().join("~").to_str().unwrap().to_owned();
        assert_eq!(
            probe(&guest, "~"),
            Ok(FileContent::Large {
                path: expected,
                bytes: 100_000
            })
        );
    }
}

#[test]
fn h8_missing_parents_are_made() {
    for guest in each() {
        write(&guest, "a/b c/-d/file", b"deep");
        assert_eq!(
            fs::read(guest.home().join("a/b c/-d/file")).unwrap(),
            b"deep"
        );
        write(&guest, "a/b c/../sibling", b"near");
        assert_eq!(fs::read(guest.home().join("a/sibling")).unwrap(), b"near");
    }
}

#[test]
fn r24_a_mode_is_kept_or_set() {
    for guest in each() {
        let file = guest.home().join("file");
        let bystander = guest.home().join("bystander");
        fs::write(&bystander, "").unwrap();
        write(&guest, "file", b"new");
        assert_eq!(
            mode_of(&file),
            mode_of(&bystander),
            "as any new file of this user"
        );
        for mode in [0o600, 0o755, 0o4755, 0o444] {
            assert!(try_write(&guest, "file", b"1", Some(mode)).is_ok());
            assert_eq!(mode_of(&file), mode, "{:?}", guest.shell);
            if mode != 0o444 {
                write(&guest, "file", &vec![b'2'; 70_000]);
                assert_eq!(mode_of(&file), mode, "{:?} keeps", guest.shell);
            }
        }
        assert!(try_write(&guest, "fresh", b"1", Some(0o640)).is_ok());
        assert_eq!(mode_of(&guest.home().join("fresh")), 0o640);
    }
}

#[test]
fn r24_a_link_stays_and_the_file_it_leads_to_is_replaced() {
    for guest in each() {
        let home = guest.home();
        fs::create_dir_all(home.join("real/deep")).unwrap();
        fs::write(home.join("real/file"), "old").unwrap();
        let absolute = home.join("real/file");
        for (link, target) in [
            ("relative", Path::new("real/file")),
            ("absolute", absolute.as_path()),
            ("chain", Path::new("relative")),
            ("real/deep/up", Path::new("../file")),
            ("fresh", Path::new("real/made")),
            ("odd", Path::new("real/end\n\n")),
        ] {
            symlink(target, home.join(link)).unwrap();
            write(&guest, link, link.as_bytes());
            assert!(
                fs::symlink_metadata(home.join(link)).unwrap().is_symlink(),
                "{:?} {link}",
                guest.shell
            );
            assert_eq!(
                fs::read(home.join(link)).unwrap(),
                link.as_bytes(),
                "{:?} {link}",
                guest.shell
            );
            assert_eq!(read(&guest, link).unwrap(), link.as_bytes());
        }
        assert_eq!(fs::read(&absolute).unwrap(), b"real/deep/up");
        assert_eq!(fs::read(home.join("real/made")).unwrap(), b"fresh");
        symlink("loop", home.join("loop")).unwrap();
        assert_eq!(
            try_write(&guest, "loop", b"x", None),
            Err(FileFault::NotRegular)
        );
        assert_eq!(
            probe(&guest, "loop").unwrap_err(),
            FileFault::NotRegular,
            "{:?}",
            guest.shell
        );
        symlink("real/", home.join("todir")).unwrap();
        assert_eq!(
            try_write(&guest, "todir", b"x", None),
            Err(FileFault::IsDirectory)
        );
    }
}

#[test]
fn r24_other_hard_links_keep_the_old_content() {
    for guest in each() {
        let home = guest.home();
        fs::write(home.join("one"), "old").unwrap();
        fs::hard_link(home.join("one"), home.join("two")).unwrap();
        write(&guest, "one", b"new");
        assert_eq!(fs::read(home.join("two")).unwrap(), b"old");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn r24_h7_random_names_and_bytes_are_read_back(
        name in prop::collection::vec(any::<char>(), 1..40),
        bytes in prop::collection::vec(any::<u8>(), 0..500),
        repeat in prop_oneof![Just(1_usize), Just(300)],
    ) {
        let name: String = name.into_iter().filter(|letter| !"/\0".contains(*letter)).collect();
        let name = name + "x";
        let content = bytes.repeat(repeat);
        for shell in SHELLS {
            let guest = guest(shell);
            write(&guest, &format!("d/{name}"), &content);
            let entry = fs::read_dir(guest.home().join("d")).unwrap().next().unwrap().unwrap();
            let found = entry.file_name();
            prop_assert_eq!(found.as_bytes(), name.as_bytes());
            prop_assert!(fs::read(entry.path()).unwrap() == content);
            let path = format!("d/{name}");
            prop_assert!(read(&guest, &path).unwrap() == content);
        }
    }
}
