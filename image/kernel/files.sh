# shellcheck shell=bash
# Sourced: kernel_files sets $kernel, the kernel to boot, and $modules, the folder of drivers it
# needs in its initramfs or nothing. Both kinds of kernel look alike to the caller.
kernel_files() {
  local made
  made=$("$(dirname "${BASH_SOURCE[0]}")/build.sh")
  modules=
  kernel=$made
  if [ -d "$made" ]; then kernel=$made/vmlinuz modules=$made/modules; fi
}
