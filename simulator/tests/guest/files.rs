//! Files, read and written from outside.

use bytes::Bytes;
use runloop_simulator::guest::{BoxSpec, FileError, Guest, Machine};

use crate::support::{boot, print, run};
use crate::{in_both, in_namespaces};

in_both!(
    every_byte_comes_back,
    a_write_replaces_the_content,
    relative_paths_and_tilde_lead_to_the_home,
    commands_and_the_room_see_the_same_files,
    a_path_that_leads_to_no_regular_file_says_why,
    a_long_or_impossible_name_says_so,
    parents_are_not_made,
    odd_names_are_exact,
    reading_stops_at_the_limit,
    a_large_file_goes_through_in_pieces,
    the_limit_of_the_disk_holds_for_writes,
    a_suspended_devbox_has_no_files,
);

const NO_LIMIT: u64 = u64::MAX;

async fn write(guest: &Guest, path: &str, content: &'static str) -> Result<(), FileError> {
    guest.write_file(path, content.into()).await
}

async fn read(guest: &Guest, path: &str) -> Result<Bytes, FileError> {
    guest.read_file(path, NO_LIMIT).await
}

async fn every_byte_comes_back(machine: Machine) {
    let guest = boot(&machine).await;
    for len in [0, 1, 256, 100_000, 1 << 20] {
        let content: Bytes = (0..=255).cycle().take(len).collect();
        guest.write_file("bytes", content.clone()).await.unwrap();
        assert!(read(&guest, "bytes").await.unwrap() == content, "{len}");
        assert_eq!(
            print(&guest, "stat -c %s:%a bytes").await,
            format!("{len}:644\n")
        );
    }
}

async fn a_write_replaces_the_content(machine: Machine) {
    let guest = boot(&machine).await;
    for content in ["0123456789", "short", ""] {
        write(&guest, "x", content).await.unwrap();
        assert_eq!(read(&guest, "x").await.unwrap(), content);
    }
}

async fn relative_paths_and_tilde_lead_to_the_home(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "mkdir sub; echo a > a; echo b > sub/b").await;
    for (path, content) in [
        ("a", "a\n"),
        ("./sub/../a", "a\n"),
        ("~/a", "a\n"),
        ("~/sub/b", "b\n"),
        ("/home/user/a", "a\n"),
    ] {
        assert_eq!(read(&guest, path).await.unwrap(), content, "{path}");
    }
    write(&guest, "~", "x").await.unwrap_err();
    write(&guest, "sub/~", "tilde").await.unwrap();
    assert_eq!(print(&guest, "cat sub/~").await, "tilde");
}

async fn commands_and_the_room_see_the_same_files(machine: Machine) {
    let guest = boot(&machine).await;
    let path = format!("/tmp/runloop-simulator-{}", uuid::Uuid::new_v4());
    guest
        .write_file(&path, "from outside".into())
        .await
        .unwrap();
    assert_eq!(
        print(&guest, &format!("cat {path}; rm {path}")).await,
        "from outside"
    );
    assert!(matches!(read(&guest, &path).await, Err(FileError::Missing)));
}

async fn a_path_that_leads_to_no_regular_file_says_why(machine: Machine) {
    let guest = boot(&machine).await;
    print(
        &guest,
        "mkdir dir; mkfifo pipe; ln -s nowhere dangling; ln -s loop loop; echo x > file",
    )
    .await;
    for path in ["none", "none/x", "file/x", "dangling"] {
        assert!(
            matches!(read(&guest, path).await, Err(FileError::Missing)),
            "{path}"
        );
    }
    for path in ["dir", ".", "/", "~"] {
        assert!(
            matches!(read(&guest, path).await, Err(FileError::IsDirectory)),
            "{path}"
        );
        assert!(
            matches!(write(&guest, path, "x").await, Err(FileError::IsDirectory)),
            "{path}"
        );
    }
    for path in ["pipe", "/dev/null"] {
        assert!(
            matches!(read(&guest, path).await, Err(FileError::NotRegular)),
            "{path}"
        );
        assert!(
            matches!(write(&guest, path, "x").await, Err(FileError::NotRegular)),
            "{path}"
        );
    }
    assert!(matches!(read(&guest, "loop").await, Err(FileError::Io(_))));
    assert!(read(&guest, "/proc/self/mem").await.is_err());
    assert_eq!(
        print(&guest, "ls -d dir/* pipe 2>/dev/null; cat file").await,
        "pipe\nx\n"
    );
}

async fn a_long_or_impossible_name_says_so(machine: Machine) {
    let guest = boot(&machine).await;
    let longest = "n".repeat(255);
    write(&guest, &longest, "x").await.unwrap();
    assert_eq!(read(&guest, &longest).await.unwrap(), "x");
    let too_long = "n".repeat(256);
    assert!(matches!(
        write(&guest, &too_long, "x").await,
        Err(FileError::NameTooLong)
    ));
    let deep = "d/".repeat(2500);
    assert!(matches!(
        read(&guest, &deep).await,
        Err(FileError::NameTooLong)
    ));
    for path in ["", "a\0b"] {
        assert!(matches!(
            write(&guest, path, "x").await,
            Err(FileError::InvalidPath)
        ));
    }
}

async fn parents_are_not_made(machine: Machine) {
    let guest = boot(&machine).await;
    assert!(matches!(
        write(&guest, "a/b/c", "x").await,
        Err(FileError::Missing)
    ));
    assert_eq!(print(&guest, "ls -A").await, "");
}

async fn odd_names_are_exact(machine: Machine) {
    let guest = boot(&machine).await;
    let names = [
        "a b",
        "-rf",
        "re\"port",
        "r'x",
        "back\\",
        "new\nline",
        "100%",
        "%20",
        "é",
        "e\u{301}",
        "日本",
        "*",
        "$HOME",
        "trailing ",
        "~tilde",
    ];
    for name in names {
        guest
            .write_file(name, Bytes::copy_from_slice(name.as_bytes()))
            .await
            .unwrap();
    }
    for name in names {
        assert_eq!(read(&guest, name).await.unwrap(), name);
    }
    let mut listed: Vec<_> = names.iter().map(|name| format!("./{name}\0")).collect();
    listed.sort_unstable();
    assert_eq!(
        print(&guest, "find . -type f -print0 | LC_ALL=C sort -z").await,
        listed.concat()
    );
}

async fn reading_stops_at_the_limit(machine: Machine) {
    let guest = boot(&machine).await;
    write(&guest, "ten", "0123456789").await.unwrap();
    assert_eq!(guest.read_file("ten", 10).await.unwrap(), "0123456789");
    let error = guest.read_file("ten", 9).await.unwrap_err();
    assert!(matches!(
        error,
        FileError::TooLarge {
            actual_bytes: 10,
            max_bytes: 9
        }
    ));
    // Says that it holds nothing.
    assert!(matches!(
        guest.read_file("/proc/cpuinfo", 3).await,
        Err(FileError::TooLarge { .. })
    ));
}

async fn a_large_file_goes_through_in_pieces(machine: Machine) {
    let guest = boot(&machine).await;
    let piece: Bytes = (0..=250).cycle().take(1 << 20).collect();
    let mut writer = guest.create_file("large").await.unwrap();
    for _ in 0..64 {
        writer.write(piece.clone()).await.unwrap();
    }
    let mut reader = guest.open_file("large").await.unwrap();
    assert_eq!(reader.len(), 64 << 20);
    let (mut position, mut pieces) = (0, 0);
    while let Some(bytes) = reader.next().await.unwrap() {
        let start = position % piece.len();
        assert!(bytes == piece[start..start + bytes.len()], "at {position}");
        position += bytes.len();
        pieces += 1;
    }
    assert_eq!(position, 64 << 20);
    assert!(pieces > 100);
}

async fn the_limit_of_the_disk_holds_for_writes(machine: Machine) {
    let mut spec = BoxSpec::new("box");
    spec.max_disk_bytes = Some(1 << 20);
    let guest = machine.boot(spec, None).await.unwrap();
    let full: Bytes = vec![b'x'; 2 << 20].into();
    assert!(matches!(
        guest.write_file("x", full).await,
        Err(FileError::NoSpace)
    ));
    print(&guest, "rm x").await;
    guest
        .write_file("y", vec![b'y'; 500 << 10].into())
        .await
        .unwrap();
    let error = guest
        .write_file("z", vec![b'z'; 900 << 10].into())
        .await
        .unwrap_err();
    assert!(matches!(error, FileError::NoSpace));
    assert_eq!(print(&guest, "stat -c %s y").await, "512000\n");
}

async fn a_suspended_devbox_has_no_files(machine: Machine) {
    let guest = boot(&machine).await;
    write(&guest, "x", "kept").await.unwrap();
    guest.suspend().await.unwrap();
    assert!(matches!(
        read(&guest, "x").await,
        Err(FileError::NotRunning)
    ));
    assert!(matches!(
        write(&guest, "x", "lost").await,
        Err(FileError::NotRunning)
    ));
    guest.resume().await.unwrap();
    assert_eq!(read(&guest, "x").await.unwrap(), "kept");
}

mod isolated {
    use super::*;

    in_namespaces!(
        permissions_are_the_users,
        links_never_lead_to_the_host,
        the_limit_of_the_disk_holds_for_commands,
    );

    async fn permissions_are_the_users(machine: Machine) {
        let guest = boot(&machine).await;
        print(&guest, "echo x > secret; chmod 0 secret").await;
        for path in ["/root/x", "/etc/shadow", "secret"] {
            let error = read(&guest, path).await.unwrap_err();
            assert!(matches!(error, FileError::PermissionDenied), "{path}");
        }
        for path in ["/etc/passwd", "/x", "/proc/sys/kernel/panic", "secret"] {
            let error = write(&guest, path, "x").await.unwrap_err();
            assert!(matches!(error, FileError::PermissionDenied), "{path}");
        }
        write(&guest, "mine", "x").await.unwrap();
        assert_eq!(print(&guest, "stat -c %U:%G mine").await, "user:user\n");
    }

    async fn links_never_lead_to_the_host(machine: Machine) {
        let guest = boot(&machine).await;
        let host = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::write(host.path().join("secret"), "host").unwrap();
        let path = host.path().display();
        print(
            &guest,
            &format!("ln -s {path}/secret link; ln -s /proc/1/root/{path} up"),
        )
        .await;
        for path in ["link", "up/secret", "../../../../../../etc/hostname"] {
            let found = read(&guest, path).await.unwrap_or_default();
            assert_ne!(found, "host");
        }
        print(
            &guest,
            &format!("mkdir -p {path}; echo guest > {path}/secret"),
        )
        .await;
        assert_eq!(read(&guest, "link").await.unwrap(), "guest\n");
        write(&guest, "link", "changed").await.unwrap();
        assert_eq!(
            std::fs::read_to_string(host.path().join("secret")).unwrap(),
            "host"
        );
        assert_eq!(
            read(&guest, "../../../../../../etc/hostname")
                .await
                .unwrap(),
            "box\n"
        );
    }

    async fn the_limit_of_the_disk_holds_for_commands(machine: Machine) {
        let mut spec = BoxSpec::new("box");
        spec.max_disk_bytes = Some(1 << 20);
        let guest = machine.boot(spec, None).await.unwrap();
        let outcome = run(&guest, "head -c 2000000 /dev/zero > /tmp/x").await;
        assert!(outcome.stderr.contains("No space left on device"));
        assert_eq!(outcome.code, 1);
        print(&guest, "rm /tmp/x; head -c 500000 /dev/zero > /tmp/x").await;
    }
}
