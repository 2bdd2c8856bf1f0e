# For a build without downloads: host tools come from Debian's packages. Buildroot reads this file
# before the packages' own, and GNU make's `override` keeps theirs from replacing what is set here.
# A definition inside a definition makes GNU make miscount its ends: one line each.
TINBOX_OFFLINE := $(dir $(lastword $(MAKEFILE_LIST)))

define tinbox-link
	mkdir -p $(HOST_DIR)/bin $(HOST_DIR)/sbin
	for tool in $(1); do \
		path=$$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v $${tool##*/}) || \
			{ echo "$$tool is missing" >&2; exit 1; }; \
		ln -sf $$path $(HOST_DIR)/$$tool; \
	done
endef

# $(1): the package, $(2): the programs that it would build
define tinbox-debian
HOST_$(1)_OVERRIDE_SRCDIR := $(TINBOX_OFFLINE)/stub
override HOST_$(1)_DEPENDENCIES := host-skeleton
override HOST_$(1)_CONFIGURE_CMDS = true
override HOST_$(1)_BUILD_CMDS = true
override HOST_$(1)_INSTALL_CMDS = $$(call tinbox-link,$(2))
override HOST_$(1)_POST_INSTALL_HOOKS :=
override HOST_$(1)_POST_PATCH_HOOKS :=
override HOST_$(1)_PRE_CONFIGURE_HOOKS :=
override HOST_$(1)_LICENSE_FILES :=
override $(1)_LICENSE_FILES :=
override HOST_$(1)_REDISTRIBUTE := NO
endef

$(eval $(call tinbox-debian,TAR,bin/tar))
$(eval $(call tinbox-debian,FAKEROOT,bin/fakeroot))
$(eval $(call tinbox-debian,KMOD,bin/kmod sbin/depmod sbin/modprobe))
$(eval $(call tinbox-debian,ELFUTILS,))
$(eval $(call tinbox-debian,LIBOPENSSL,bin/openssl))
$(eval $(call tinbox-debian,PKGCONF,))
$(eval $(call tinbox-debian,UTIL_LINUX,))
$(eval $(call tinbox-debian,ZSTD,bin/zstd))
$(eval $(call tinbox-debian,SQUASHFS,bin/mksquashfs bin/unsquashfs))
$(eval $(call tinbox-debian,E2FSPROGS,sbin/mkfs.ext4 sbin/dumpe2fs))
$(eval $(call tinbox-debian,DOSFSTOOLS,sbin/mkfs.fat sbin/fsck.fat))
$(eval $(call tinbox-debian,MTOOLS,bin/mtools bin/mcopy bin/mmd))
$(eval $(call tinbox-debian,PATCHELF,))
override define HOST_PATCHELF_INSTALL_CMDS
	install -D -m 0755 $(TINBOX_OFFLINE)/patchelf.sh $(HOST_DIR)/bin/patchelf
endef
$(eval $(call tinbox-debian,RUST_BIN,))
override HOST_RUST_BIN_EXTRA_DOWNLOADS :=
override HOST_RUST_BIN_POST_EXTRACT_HOOKS :=
override define HOST_RUST_BIN_INSTALL_CMDS
	mkdir -p $(HOST_DIR)/bin
	for t in rustc cargo rustdoc; do ln -sf $(TINBOX_RUST)/bin/$$t $(HOST_DIR)/bin/$$t; done
endef

# GRUB from Debian's modules.
override GRUB2_LICENSE_FILES :=
override GRUB2_REDISTRIBUTE := NO
GRUB2_OVERRIDE_SRCDIR := $(TINBOX_OFFLINE)/stub
override GRUB2_DEPENDENCIES := host-skeleton
override define GRUB2_CONFIGURE_CMDS
	true
endef
override define GRUB2_BUILD_CMDS
	true
endef
override define GRUB2_INSTALL_IMAGES_CMDS
	mkdir -p $(BINARIES_DIR)/efi-part/EFI/BOOT
	grub-mkimage -d $(or $(TINBOX_GRUB),/usr/lib/grub/x86_64-efi) \
		-O $(if $(BR2_aarch64),arm64-efi,x86_64-efi) -p /EFI/BOOT \
		-o $(BINARIES_DIR)/efi-part/EFI/BOOT/$(if $(BR2_aarch64),bootaa64,bootx64).efi \
		-c $(call qstrip,$(BR2_TARGET_GRUB2_BUILTIN_CONFIG_EFI)) \
		$(call qstrip,$(BR2_TARGET_GRUB2_BUILTIN_MODULES_EFI))
endef

# iPXE as Debian builds it.
TINBOX_IPXE_OVERRIDE_SRCDIR := $(TINBOX_OFFLINE)/stub
override TINBOX_IPXE_LICENSE_FILES :=
override define TINBOX_IPXE_BUILD_CMDS
	true
endef
override define TINBOX_IPXE_INSTALL_IMAGES_CMDS
	$(TINBOX_TOP)/image/ipxe.sh $(BINARIES_DIR)/artifacts/ipxe
endef
