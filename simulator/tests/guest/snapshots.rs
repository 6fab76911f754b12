//! Copies of a disk.

use runloop_simulator::guest::{BoxSpec, Guest, Layer, Machine, Spawn, User};

use crate::support::{boot, print, run, shows};
use crate::{in_both, in_namespaces};

in_both!(
    a_layer_holds_the_disk_of_its_moment,
    a_layer_outlives_its_source,
    a_devbox_outlives_its_layer,
    kinds_modes_times_and_links_are_kept,
    a_suspended_devbox_can_be_copied,
    a_copy_of_a_copy_holds_both,
);

async fn restore(machine: &Machine, id: &str, layer: &Layer) -> Guest {
    machine.boot(BoxSpec::new(id), Some(layer)).await.unwrap()
}

async fn a_layer_holds_the_disk_of_its_moment(machine: Machine) {
    let guest = boot(&machine).await;
    let script = "echo before > file; while :; do date +%N > busy; done & echo up; wait";
    let running = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(running.stdout(), "up").await;
    guest
        .write_file("big", vec![b'x'; 3 << 20].into())
        .await
        .unwrap();
    let layer = guest.snapshot().await.unwrap();
    guest.write_file("file", "after".into()).await.unwrap();
    assert!(layer.size_bytes() >= 3 << 20);
    assert!(layer.size_bytes() < 4 << 20);
    let copy = restore(&machine, "copy", &layer).await;
    assert_eq!(
        print(&copy, "cat file; stat -c %s big").await,
        "before\n3145728\n"
    );
    assert_eq!(copy.processes().await.unwrap(), []);
    assert_eq!(print(&guest, "cat file").await, "after");
}

async fn a_layer_outlives_its_source(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo kept > kept").await;
    let layer = guest.snapshot().await.unwrap();
    guest.destroy().await.unwrap();
    let copies = [
        restore(&machine, "a", &layer).await,
        restore(&machine, "b", &layer).await,
    ];
    print(&copies[0], "echo changed > kept").await;
    assert_eq!(print(&copies[1], "cat kept").await, "kept\n");
}

async fn a_devbox_outlives_its_layer(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo kept > kept").await;
    let layer = guest.snapshot().await.unwrap();
    let copy = restore(&machine, "copy", &layer).await;
    layer.delete().await.unwrap();
    layer.delete().await.unwrap();
    assert_eq!(print(&copy, "cat kept").await, "kept\n");
    copy.suspend().await.unwrap();
    copy.resume().await.unwrap();
    assert_eq!(print(&copy, "cat kept").await, "kept\n");
}

async fn kinds_modes_times_and_links_are_kept(machine: Machine) {
    let guest = boot(&machine).await;
    let make = "mkdir -p d/e; echo x > d/file; ln d/file d/e/twin; ln -s ../gone d/link; mkfifo d/pipe; \
                chmod 4711 d/file; chmod 500 d/e; touch -hd '2001-02-03 04:05:06.789' d/file d/link d/e";
    print(&guest, make).await;
    let layer = guest.snapshot().await.unwrap();
    let copy = restore(&machine, "copy", &layer).await;
    let look = "cd d; stat -c '%n %f %h %s %U %Y' file e/twin link pipe e; stat -c %y file; \
                readlink link; [ file -ef e/twin ] && echo same";
    assert_eq!(print(&copy, look).await, print(&guest, look).await);
}

async fn a_suspended_devbox_can_be_copied(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo kept > kept").await;
    guest.suspend().await.unwrap();
    let layer = guest.snapshot().await.unwrap();
    let copy = restore(&machine, "copy", &layer).await;
    assert_eq!(print(&copy, "cat kept").await, "kept\n");
}

async fn a_copy_of_a_copy_holds_both(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo 1 > one").await;
    let first = guest.snapshot().await.unwrap();
    let copy = restore(&machine, "copy", &first).await;
    print(&copy, "echo 2 > two").await;
    let second = copy.snapshot().await.unwrap();
    let last = restore(&machine, "last", &second).await;
    assert_eq!(print(&last, "cat one two").await, "1\n2\n");
}

mod isolated {
    use super::*;

    in_namespaces!(
        what_was_removed_stays_removed,
        attributes_and_the_whole_root_are_kept
    );

    async fn what_was_removed_stays_removed(machine: Machine) {
        let mut spec = BoxSpec::new("box");
        spec.user = User::root();
        let guest = machine.boot(spec.clone(), None).await.unwrap();
        // A file, a directory, and a directory in the place of one that was removed.
        let script = "rm /etc/services; rm -r /etc/init.d; rm -r /usr/share/doc; \
                      mkdir /usr/share/doc; echo new > /usr/share/doc/new";
        print(&guest, script).await;
        let layer = guest.snapshot().await.unwrap();
        spec.id = "copy".into();
        let copy = machine.boot(spec, Some(&layer)).await.unwrap();
        assert_ne!(run(&copy, "cat /etc/services").await.code, 0);
        assert_ne!(run(&copy, "ls /etc/init.d").await.code, 0);
        assert_eq!(print(&copy, "ls /usr/share/doc").await, "new\n");
    }

    async fn attributes_and_the_whole_root_are_kept(machine: Machine) {
        let mut spec = BoxSpec::new("box");
        spec.user = User::root();
        let guest = machine.boot(spec.clone(), None).await.unwrap();
        let script = "echo tool > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool; \
                      mkdir /srv/d; chown 12:34 /srv/d; \
                      perl -e '($p, $n, $v) = (\"/srv/d\", \"trusted.mark\", \"on\"); \
                      syscall(188, $p, $n, $v, 2, 0) == 0 or die $!'";
        print(&guest, script).await;
        let layer = guest.snapshot().await.unwrap();
        spec.id = "copy".into();
        spec.hostname = "renamed".into();
        let copy = machine.boot(spec, Some(&layer)).await.unwrap();
        let look = "stat -c %u:%g:%a /srv/d /usr/local/bin/tool; cat /usr/local/bin/tool /etc/hostname; \
                    perl -e '($p, $n, $v) = (\"/srv/d\", \"trusted.mark\", \"  \"); \
                    syscall(191, $p, $n, $v, 2); print $v'";
        assert_eq!(
            print(&copy, look).await,
            "12:34:755\n0:0:755\ntool\nrenamed\non"
        );
    }
}
