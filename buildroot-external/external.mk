# The checkout that this tree is part of: fragments, boot script and assembly are shared with the
# image that is made without Buildroot (image/dev.sh).
TINBOX_TOP = $(realpath $(BR2_EXTERNAL_TINBOX_PATH)/..)
TINBOX_GRUB_MODULES = $(shell sed 's/\#.*//' $(TINBOX_TOP)/image/boot/grub-modules)

include $(sort $(wildcard $(BR2_EXTERNAL_TINBOX_PATH)/package/*/*.mk))
