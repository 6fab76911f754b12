//! Files that cannot be read or written, and what is left of them then.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::Command as Process;

use beachside_runloop::shell::{
    FileContent, FileFault, FileSource, probe_file, read_probe, read_written, write_file,
};

use crate::file_harness::{each, probe, scraps, script, try_write, write};
use crate::harness::{NOBODY, find, is_root, litter, nonce};

#[test]
fn h8_what_is_no_regular_file_is_told_at_once_and_kept() {
    for guest in each() {
        let home = guest.home();
        fs::create_dir(home.join("dir")).unwrap();
        fs::write(home.join("dir/kept"), "").unwrap();
        fs::write(home.join("plain"), "old").unwrap();
        let fifo = home.join("fifo");
        assert!(
            Process::new(find("mkfifo"))
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        for (path, read_fault, write_fault) in [
            ("dir", FileFault::IsDirectory, FileFault::IsDirectory),
            ("dir/", FileFault::IsDirectory, FileFault::IsDirectory),
            ("/", FileFault::IsDirectory, FileFault::IsDirectory),
            (".", FileFault::IsDirectory, FileFault::IsDirectory),
            ("dir/..", FileFault::IsDirectory, FileFault::IsDirectory),
            ("fifo", FileFault::NotRegular, FileFault::NotRegular),
            ("/dev/null", FileFault::NotRegular, FileFault::NotRegular),
            (
                "plain/below",
                FileFault::Missing,
                FileFault::ParentNotDirectory,
            ),
        ] {
            assert_eq!(
                probe(&guest, path).unwrap_err(),
                read_fault,
                "{:?} read {path}",
                guest.shell
            );
            for content in [b"x".to_vec(), vec![b'x'; 100_000]] {
                let fault = try_write(&guest, path, &content, None).unwrap_err();
                assert_eq!(fault, write_fault, "{:?} write {path}", guest.shell);
            }
        }
        for path in ["missing", "no/such/dir", "Permission denied/x", "dangling"] {
            if path == "dangling" {
                symlink("nowhere", home.join(path)).unwrap();
            }
            assert_eq!(
                probe(&guest, path).unwrap_err(),
                FileFault::Missing,
                "{:?} {path}",
                guest.shell
            );
        }
        // An input/output error on Linux proper; some kernels read it as empty.
        let memory = probe(&guest, "/proc/self/mem");
        let empty = FileContent::Inline(Vec::new());
        assert!(memory == Err(FileFault::NotRegular) || memory == Ok(empty));
        assert!(home.join("dir/kept").exists());
        assert_eq!(fs::read(home.join("plain")).unwrap(), b"old");
        assert_eq!(scraps(&home), Vec::<PathBuf>::new());
    }
}

#[test]
fn h8_a_file_without_permission_is_told_and_kept() {
    for guest in each() {
        let home = guest.home();
        for (path, mode) in [("secret", 0o000), ("closed/inside", 0o644)] {
            fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            fs::write(home.join(path), "old").unwrap();
            fs::set_permissions(home.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(home.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let guest_home = home.to_str().unwrap();
        for path in ["secret", "closed/inside", "closed/new", "new", "newdir/new"] {
            let absolute = format!("{guest_home}/{path}");
            let nonce = nonce();
            let printed = guest.run_unprivileged(&script(&absolute, b"x", None, &nonce));
            let fault = read_written(&printed, &nonce).unwrap().unwrap_err();
            assert_eq!(
                fault,
                FileFault::Permission,
                "{:?} write {path}",
                guest.shell
            );
            if path.contains("new") && !path.contains("closed") {
                continue;
            }
            let probe = probe_file(&absolute, &nonce).unwrap();
            let printed = guest.run_unprivileged(&probe.command);
            let fault = read_probe(&printed, &absolute, &nonce)
                .unwrap()
                .unwrap_err();
            assert_eq!(
                fault,
                FileFault::Permission,
                "{:?} read {path}",
                guest.shell
            );
        }
        assert_eq!(fs::read(home.join("closed/inside")).unwrap(), b"old");
    }
}

#[test]
fn r24_an_owner_is_kept_or_the_file_left_alone() {
    assert!(is_root(), "this test gives files away: run it as root");
    for guest in each() {
        let file = guest.home().join("file");
        fs::write(&file, "old").unwrap();
        chown(&file, Some(12_345), Some(54_321)).unwrap();
        write(&guest, "file", b"by root");
        let kept = fs::metadata(&file).unwrap();
        assert_eq!(
            (kept.uid(), kept.gid()),
            (12_345, 54_321),
            "{:?}",
            guest.shell
        );

        let shared = guest.home().join("shared");
        fs::create_dir(&shared).unwrap();
        chown(&shared, Some(NOBODY), Some(NOBODY)).unwrap();
        for (owner, group) in [(12_345, NOBODY), (NOBODY, 54_321)] {
            let file = shared.join("file");
            fs::write(&file, "old").unwrap();
            chown(&file, Some(owner), Some(group)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
            let nonce = nonce();
            let path = file.to_str().unwrap();
            let printed = guest.run_unprivileged(&script(path, b"new", None, &nonce));
            assert_eq!(
                read_written(&printed, &nonce).unwrap(),
                Err(FileFault::Owner),
                "{:?}",
                guest.shell
            );
            assert_eq!(fs::read(&file).unwrap(), b"old");
            assert_eq!(scraps(&shared), Vec::<PathBuf>::new());
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn r24_an_upload_of_another_user_is_used_and_named_where_it_stays() {
    assert!(
        is_root(),
        "this test uploads as another user: run it as root"
    );
    for guest in each() {
        chown(guest.home(), Some(NOBODY), Some(NOBODY)).unwrap();
        let nonce = nonce();
        let path = guest.home().join("file");
        let content = vec![b'x'; 100_000];
        let command = script(path.to_str().unwrap(), &content, None, &nonce);
        fs::set_permissions(nonce.file_path(), fs::Permissions::from_mode(0o644)).unwrap();
        let printed = guest.run_unprivileged(&command);
        let written = read_written(&printed, &nonce).unwrap().unwrap();
        assert_eq!(
            written.left_upload,
            Some(nonce.file_path()),
            "{:?}",
            guest.shell
        );
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY);
        fs::remove_file(nonce.file_path()).unwrap();
    }
}

#[test]
fn h1_a_full_disk_is_told_and_leaves_the_old_content() {
    for guest in each() {
        let disk = guest.home().join("disk");
        fs::create_dir(&disk).unwrap();
        for content in [vec![b'x'; 60_000], vec![b'x'; 200_000]] {
            let nonce = nonce();
            let path = disk.join("file");
            let write = script(path.to_str().unwrap(), &content, None, &nonce);
            let process = guest.process(&format!(
                "{write}\ncd {0}; for f in * .b*; do echo \"$f\"; done; read x <file; echo $x",
                disk.display()
            ));
            let set_up = format!(
                "mount -t tmpfs -o size=16k none {0} && echo old >{0}/file && exec \"$@\"",
                disk.display()
            );
            let mut namespace = Process::new(find("unshare"));
            if !is_root() {
                namespace.arg("-Ur");
            }
            let output = namespace
                .args(["-m", "/bin/sh", "-c", &set_up, "sh", "/usr/bin/env", "-i"])
                .arg(format!("PATH={}", guest.bin().display()))
                .arg(process.get_program())
                .args(process.get_args())
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let outcome = read_written(&printed, &nonce);
            assert_eq!(
                outcome,
                Ok(Err(FileFault::NoSpace)),
                "{:?} {printed} {:?}",
                guest.shell,
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(
                printed.ends_with("\nfile\n.b*\nold\n"),
                "{:?} {printed}",
                guest.shell
            );
            assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
        }
    }
}

#[test]
fn h1_an_upload_that_was_lost_or_cut_changes_nothing() {
    for guest in each() {
        fs::write(guest.home().join("file"), "old").unwrap();
        for uploaded in [None, Some(b"short")] {
            let nonce = nonce();
            let source = FileSource::Uploaded { bytes: 70_000 };
            let wrapped = write_file("file", source, None, &nonce).unwrap();
            if let Some(content) = uploaded {
                fs::write(nonce.file_path(), content).unwrap();
            }
            let printed = guest.run(&wrapped);
            assert_eq!(
                read_written(&printed, &nonce).unwrap(),
                Err(FileFault::UploadLost)
            );
            assert_eq!(litter(&nonce), Vec::<PathBuf>::new());
        }
        assert_eq!(fs::read(guest.home().join("file")).unwrap(), b"old");
        assert_eq!(scraps(&guest.home()), Vec::<PathBuf>::new());
    }
}

#[test]
fn r19_a_missing_tool_of_files_is_named() {
    for tool in ["chmod", "mkdir", "mv", "stat", "base64", "rm", "wc"] {
        for guest in each() {
            fs::remove_file(guest.bin().join(tool)).unwrap();
            let missing = Err(FileFault::MissingTool(tool.to_owned()));
            assert_eq!(
                try_write(&guest, "file", b"x", None),
                missing,
                "{:?}",
                guest.shell
            );
            assert!(!guest.home().join("file").exists());
        }
    }
}
