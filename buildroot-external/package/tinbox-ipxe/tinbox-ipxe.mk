################################################################################
#
# tinbox-ipxe
#
################################################################################

TINBOX_IPXE_VERSION = 0ab2277c40f1de56c736b9e7db7ee23d52509ec5
TINBOX_IPXE_SITE = https://github.com/ipxe/ipxe.git
TINBOX_IPXE_SITE_METHOD = git
TINBOX_IPXE_LICENSE = GPL-2.0 or UBDL
TINBOX_IPXE_LICENSE_FILES = COPYING COPYING.GPLv2 COPYING.UBDL
TINBOX_IPXE_INSTALL_TARGET = NO
TINBOX_IPXE_INSTALL_IMAGES = YES

# By the machine's own network driver, and by iPXE's; for BIOS and for UEFI.
TINBOX_IPXE_FILES = \
	bin/undionly.kpxe bin/ipxe.pxe \
	bin-x86_64-efi/snponly.efi bin-x86_64-efi/ipxe.efi

# Its makefile takes the time that every file says from SOURCE_DATE_EPOCH.
define TINBOX_IPXE_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D)/src NO_WERROR=1 \
		CROSS_COMPILE="$(TARGET_CROSS)" HOST_CC="$(HOSTCC)" \
		GITVERSION=$(TINBOX_IPXE_VERSION) $(TINBOX_IPXE_FILES)
endef

define TINBOX_IPXE_INSTALL_IMAGES_CMDS
	$(foreach file,$(TINBOX_IPXE_FILES), \
		$(INSTALL) -D -m 0644 $(@D)/src/$(file) \
			$(BINARIES_DIR)/artifacts/ipxe/$(notdir $(file))
	)
endef

$(eval $(generic-package))
