//! Commands see nothing of the simulator's own, and a Devbox nothing of the host's.

use std::collections::BTreeMap;

use runloop_simulator::guest::{
    BoxSpec, Isolation, IsolationChoice, Machine, MachineOptions, User,
};

use crate::support::{boot, part, play, print, run, skip, within};
use crate::{in_both, in_namespaces};

in_both!(
    only_the_given_variables_are_there,
    a_variable_may_hold_anything,
    no_terminal_is_there
);

async fn only_the_given_variables_are_there(machine: Machine) {
    let mut spec = BoxSpec::new("box");
    spec.env = BTreeMap::from([("GIVEN".to_owned(), "x".to_owned())]);
    let guest = machine.boot(spec, None).await.unwrap();
    let names = print(&guest, "exec env").await;
    let mut names: Vec<_> = names
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.retain(|name| *name != "TMPDIR");
    names.sort_unstable();
    // PWD and SHLVL are bash's own.
    let expected = [
        "GIVEN", "HOME", "LOGNAME", "PATH", "PWD", "SHELL", "SHLVL", "USER",
    ];
    assert_eq!(names, expected);
}

async fn a_variable_may_hold_anything(machine: Machine) {
    let long = "é".repeat(50_000);
    for value in [
        "hello world",
        "a'b\"c",
        "$HOME",
        "x\ny",
        "",
        "=",
        long.as_str(),
    ] {
        let mut spec = BoxSpec::new("box");
        spec.env = BTreeMap::from([("V".to_owned(), value.to_owned())]);
        let guest = machine.boot(spec, None).await.unwrap();
        assert_eq!(print(&guest, "printf %s \"$V\"").await, value);
        guest.destroy().await.unwrap();
    }
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y")] {
        let mut spec = BoxSpec::new("box");
        spec.env = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert!(machine.boot(spec, None).await.is_err());
    }
}

async fn no_terminal_is_there(machine: Machine) {
    let guest = boot(&machine).await;
    assert_eq!(run(&guest, "tty").await.stdout, "not a tty\n");
    assert_ne!(run(&guest, ": < /dev/tty").await.code, 0);
    let script = "[ $(ps -o sid= -p $$) = $$ ] && [ $(ps -o pgid= -p $$) = $$ ]";
    assert_eq!(run(&guest, script).await.code, 0);
}

#[tokio::test]
async fn limits_signals_umask_and_descriptors_are_not_inherited() {
    let name = "privacy::limits_signals_umask_and_descriptors_are_not_inherited";
    let Some(kind) = part() else {
        for kind in ["plain", "auto"] {
            let spoiled = "trap '' INT TERM HUP; umask 077; ulimit -Sn 300; ulimit -Sf 2000000; \
                           exec 9</dev/null; exec";
            let status = play(kind, name, spoiled).status().unwrap();
            assert!(status.success(), "{kind}");
        }
        return;
    };
    let isolation = if kind == "plain" {
        IsolationChoice::Plain
    } else {
        IsolationChoice::Auto
    };
    let options = MachineOptions {
        isolation,
        ..Default::default()
    };
    let machine = Machine::start(options).await.unwrap();
    let guest = boot(&machine).await;
    let script = "ulimit -Sn; ulimit -Sf; umask; sed -n /^Sig[BIC]/p /proc/self/status; \
                  bash -c 'for n in {0..400}; do [ -e /proc/self/fd/$n ] && echo $n; done'; yes | head -n 1";
    let expected = "1024\nunlimited\n0022\nSigBlk:\t0000000000000000\n\
                    SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n0\n1\n2\ny\n";
    assert_eq!(within(print(&guest, script)).await, expected);
}

mod isolated {
    use super::*;

    in_namespaces!(
        the_devbox_has_its_own_processes_names_and_user,
        the_homes_and_temporary_files_of_the_host_are_not_there,
        writing_anywhere_changes_nothing_on_the_host,
        root_is_root_inside_only,
    );

    async fn the_devbox_has_its_own_processes_names_and_user(machine: Machine) {
        let guest = boot(&machine).await;
        assert_eq!(
            print(&guest, "hostname; cat /etc/hostname").await,
            "box\nbox\n"
        );
        assert_eq!(
            print(&guest, "id -un; id -u; id -G; echo ~user").await,
            "user\n1000\n1000\n/home/user\n"
        );
        assert_eq!(print(&guest, "ps -eo pid= | wc -l").await.trim(), "4");
        assert_eq!(
            print(&guest, "getent hosts $(hostname)")
                .await
                .split_whitespace()
                .next(),
            Some("127.0.0.1")
        );
        print(&guest, "touch made; [ $(stat -c %U:%a made) = user:644 ]").await;
    }

    async fn the_homes_and_temporary_files_of_the_host_are_not_there(machine: Machine) {
        let mark = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let mut spec = BoxSpec::new("box");
        spec.user = User::root();
        let guest = machine.boot(spec, None).await.unwrap();
        assert_eq!(
            run(&guest, &format!("cat {}", mark.path().display()))
                .await
                .code,
            1
        );
        assert_eq!(
            print(&guest, "ls -A /tmp /var/tmp /root").await,
            "/root:\n\n/tmp:\n\n/var/tmp:\n"
        );
        assert_eq!(print(&guest, "ls -A /home").await, "");
        assert_eq!(
            print(&guest, "ls /dev").await.split_whitespace().count(),
            13
        );
    }

    async fn writing_anywhere_changes_nothing_on_the_host(machine: Machine) {
        let name = format!("runloop-simulator-test-{}", std::process::id());
        let mut spec = BoxSpec::new("box");
        spec.user = User::root();
        let guest = machine.boot(spec, None).await.unwrap();
        for dir in ["/", "/etc", "/usr/local/bin", "/var/tmp", "/tmp", "/opt"] {
            let path = format!("{dir}/{name}");
            print(&guest, &format!("mkdir -p {dir}; echo x > {path}")).await;
            guest
                .write_file(&format!("{path}.api"), "x".into())
                .await
                .unwrap();
            assert!(!std::path::Path::new(&path).exists());
            assert!(!std::path::Path::new(&format!("{path}.api")).exists());
        }
        print(&guest, "rm /etc/passwd; rm -rf /usr/share/doc").await;
        assert!(std::path::Path::new("/etc/passwd").exists());
        assert_ne!(run(&guest, "echo 1 > /proc/sys/kernel/panic").await.code, 0);
        assert_ne!(run(&guest, "mknod disk b 254 0").await.code, 0);
    }

    async fn root_is_root_inside_only(machine: Machine) {
        let mut spec = BoxSpec::new("box");
        spec.user = User::root();
        let guest = machine.boot(spec, None).await.unwrap();
        assert_eq!(
            print(&guest, "id -u; pwd; echo $USER").await,
            "0\n/root\nroot\n"
        );
        assert_ne!(run(&guest, "date -s 2001-01-01").await.code, 0);
        assert_ne!(
            run(&guest, "kill -0 $(( $(cat /proc/sys/kernel/pid_max) - 1 ))")
                .await
                .code,
            0
        );
    }
}

/// Says in every run whether the tests of namespaces show anything.
#[tokio::test]
async fn the_rights_for_namespaces_are_there_or_named() {
    let machine = Machine::start(MachineOptions::default()).await.unwrap();
    if let Isolation::Plain { reason } = machine.isolation() {
        assert_ne!(reason, "");
        skip(&format!("every test of namespaces: {reason}"));
    }
    let options = MachineOptions {
        isolation: IsolationChoice::Plain,
        ..Default::default()
    };
    let plain = Machine::start(options).await.unwrap();
    assert!(matches!(plain.isolation(), Isolation::Plain { reason } if !reason.is_empty()));
}
