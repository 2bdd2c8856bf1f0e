//! One walk for each page with commands. Needs root and the programs of `make artifacts peers`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod flashed;
mod on_linux;

/// Makes a test of each walk: a function that takes the page's path.
macro_rules! walks {
    ($($name:ident: $walk:path => $page:literal,)*) => {
        $(
            #[test]
            fn $name() {
                $walk($page);
            }
        )*
    };
}

walks! {
    readme: flashed::readme => "README.md",
    first_box: flashed::first_box => "docs/tutorial/first-box.md",
    releasing: flashed::releasing => "docs/contributing/releasing.md",
    back_up_and_restore: flashed::back_up_and_restore => "docs/how-to/back-up-and-restore.md",
    build_an_image: flashed::build_an_image => "docs/how-to/build-an-image.md",
    reset_and_safe_mode: flashed::reset_and_safe_mode => "docs/how-to/reset-and-safe-mode.md",
    update_and_roll_back: flashed::update_and_roll_back => "docs/how-to/update-and-roll-back.md",
    cluster_api: on_linux::cluster_api => "docs/tutorial/cluster-api.md",
    demo: on_linux::demo => "docs/tutorial/demo.md",
    enroll_machines: on_linux::enroll_machines => "docs/how-to/enroll-machines.md",
    image_cache: on_linux::image_cache => "docs/how-to/image-cache.md",
    networks: on_linux::networks => "docs/how-to/networks.md",
    os_images: on_linux::os_images => "docs/how-to/os-images.md",
    preserve_and_erase: on_linux::preserve_and_erase => "docs/how-to/preserve-and-erase.md",
    retry_cancel_pause: on_linux::retry_cancel_pause => "docs/how-to/retry-cancel-pause.md",
    run_on_linux: on_linux::run_on_linux => "docs/how-to/run-on-linux.md",
    testing: on_linux::testing => "docs/explanation/testing.md",
    templates: on_linux::templates => "docs/how-to/templates.md",
    users_and_roles: on_linux::users_and_roles => "docs/how-to/users-and-roles.md",
    work_by_command: on_linux::work_by_command => "docs/how-to/command-line.md",
    command_line: on_linux::command_line => "docs/reference/cli.md",
}
