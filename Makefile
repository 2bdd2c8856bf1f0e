# Tinbox. `make help` lists what there is.

SHELL := /bin/bash
PROGRAMS := target/programs
CARGO := cargo

.DEFAULT_GOAL := help
.PHONY: help setup build artifacts peers announce demo demo-capi check test shake soak bench bench-api bench-bmc bench-capi bench-growth bench-boot bench-web \
  bench-hostile bench-imaging bench-agents bench-box released image image-dev advisories fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo '  make demo takes DEMO_NUCS=3, DEMO_FIRMWARE=bios, DEMO_KEEP=1,'
	@echo '    DEMO_BMC=ipmi, wol, webhook, amt, redfish or poe'
	@echo '  make demo BOX=image boots the box from its own disk image, in QEMU with two NICs'
	@echo '  make demo-capi takes DEMO_MODE=capt, for the stock provider instead of the box'

setup: ## install what building and testing need (Debian packages; asks for root)
	@tests/step.sh begin
	@tests/step.sh setup tests/setup.sh

build: setup ## build every program, into target/programs
	@tests/step.sh programs tests/programs.sh

artifacts: build ## assemble what the box serves: boot loaders, agent OS, images
	@TINBOX_BIN=$(PROGRAMS) tests/step.sh artifacts image/artifacts.sh out/artifacts

# A demonstration builds no kernel: it takes the one in the cache, else Debian's. The image of the
# box needs the box's own kernel.
ifeq ($(BOX),image)
demo: export KERNEL = own
else ifndef KERNEL
demo demo-capi: export KERNEL = $(shell CACHED=1 image/kernel/build.sh >/dev/null 2>&1 && echo own || echo stock)
endif

demo: announce artifacts ## install Debian on a virtual NUC, from power-on to cloud-init (root)
	@$(PROGRAMS)/tinbox-demo$(if $(filter image,$(BOX)),-image)

announce:
	@case '$(BOX)' in '' | image | process) ;; *) \
	  echo 'BOX is "$(BOX)": expected image, or process (the default)' >&2; exit 64 ;; esac
	@echo 'The first run installs packages and compiles, on two cores for about 15 minutes. Later runs'
	@echo 'take 2 minutes. DEMO_KEEP=1 keeps the rack and its page at the end.'
	@if [ "$(BOX)" = image ] && ! KERNEL=own CACHED=1 image/kernel/build.sh >/dev/null 2>&1; then \
	  echo 'BOX=image also compiles the kernel of the box, once: about 15 CPU minutes.'; fi

demo-capi: artifacts ## make a cluster of a virtual NUC by clusterctl and the box (root)
	@$(PROGRAMS)/tinbox-demo-capi

peers: setup ## build the stock programs that tests run against (Go; 20 CPU minutes, once)
	@tests/step.sh peers tests/peers/all.sh

check: ## check a change in minutes, without root; ALL=1 for the unit tests of all crates
	@tests/check.sh

test: artifacts peers ## run every test (root)
	@tests/step.sh 'test binaries' cargo test --workspace --no-run --quiet
	@tests/run.sh

shake: ## repeat a test 20 times under stalls and 20 under load: TEST=name; all unit tests without
	@tests/shake.sh '$(TEST)'

soak: artifacts peers ## run the long tests with fresh seeds, for hours; SOAK_ONLY="sim fuzz" (root)
	@tests/soak.sh

bench: artifacts ## measure, each figure beside a peer in the same run (root)
	@$(PROGRAMS)/tinbox-bench

bench-api: setup ## measure the API beside a real kube-apiserver with etcd, both durable
	$(CARGO) build --release -p supervisor -p api-bench
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-api

bench-bmc: setup ## measure power control beside ipmitool and sushy, and 1,000 BMCs
	$(CARGO) build --release -p supervisor -p api-bench
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-bmc

bench-web: setup ## measure the page beside Tinkerbell's UI, and 20 open tabs
	$(CARGO) build --release -p supervisor -p api-bench
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-web

bench-capi: build peers ## measure the Cluster API provider beside CAPT and Tinkerbell (root)
	@tests/peers/tinkerbell-server/build.sh >/dev/null
	$(CARGO) build --release -p supervisor -p cli -p api-bench
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd unshare --net sh -c 'ip link set lo up && \
	  exec target/x86_64-unknown-linux-gnu/release/tinbox-bench-capi'

bench-growth: setup ## measure a box with 10,000 machines, and its start
	$(CARGO) build --release -p supervisor -p api-bench
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-api growth

bench-boot: setup ## measure DHCP, TFTP and HTTP boot beside seven other servers (root)
	$(CARGO) build --release -p boot-bench
	@root=$$(tests/boot-bench/setup.sh) && \
	  PATH=$$root/usr/sbin:$$root/usr/bin:$$PATH \
	  LD_LIBRARY_PATH=$$root/usr/lib/x86_64-linux-gnu:$$root/lib/x86_64-linux-gnu \
	  unshare --net target/x86_64-unknown-linux-gnu/release/tinbox-bench-boot

# One set of crates for three, so that nothing is compiled twice.
released: setup
	$(CARGO) build --release -p supervisor -p cli -p agent -p image -p firmware -p qemu -p imaging-bench

bench-imaging: released ## measure writing an image beside dd, bmaptool and qemu-img (root)
	@TINBOX_IMAGES=$$(tests/imaging-bench/setup.sh) \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-imaging

bench-agents: released ## measure 200 agents at once at a running box
	@TINBOXD=target/x86_64-unknown-linux-gnu/release/tinboxd \
	  target/x86_64-unknown-linux-gnu/release/tinbox-bench-agents

bench-hostile: released ## measure what attacks cost a box of 512 MiB and those who use it (root)
	$(CARGO) build --release -p hostile-bench
	@tests/hostile-bench/bench.sh

bench-box: released ## measure the box's image, memory and start beside the budgets (root)
	@tests/firmware/bench.sh

image-dev: build ## make the box's disk image from what cargo built, in seconds
	@image/dev.sh out/image

image: setup ## build the image by Buildroot; KEY=FILE, or OFFLINE=1 BUILDROOT=DIR
	@image/buildroot.sh out/release

advisories: setup ## look for published faults in what the product is built from (online)
	$(CARGO) install --locked --version 0.20.2 --root out/deny cargo-deny
	out/deny/bin/cargo-deny check advisories

fuzz: setup ## fuzz every parser of foreign bytes, ten seconds each; FUZZ_SECS=60 for longer
	@fuzz/run.sh $(or $(FUZZ_SECS),10)

clean: ## remove what was built here; caches outside the clone stay
	rm -rf target fuzz/target out
