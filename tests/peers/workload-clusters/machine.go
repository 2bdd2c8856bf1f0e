package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// machine is a Hardware whose user data ran.
type machine struct {
	cluster  *cluster
	node     string
	userData string
	// True for a member of the control plane.
	controlPlane bool
}

// machines are all machines that run.
type machines struct {
	clusters *clusters
	// Folder with a file for each Hardware by name: the installed Kubernetes version.
	disks   string
	running map[string]*machine
	// Last error of each machine that cannot join, so that each error is logged once.
	problems map[string]string
}

// Starts and stops machines; returns false if a machine cannot join yet.
func (m *machines) reconcile(
	ctx context.Context, all map[string]*unstructured.Unstructured,
) bool {
	for key, running := range m.running {
		if text, ok := bootable(all[key]); ok && text == running.userData {
			continue
		}
		if err := running.stop(ctx); err != nil {
			klog.ErrorS(err, "Cannot stop machine", "hardware", key)
			return false
		}
		klog.InfoS("Machine stopped", "hardware", key, "node", running.node)
		delete(m.running, key)
	}
	done := true
	problems := map[string]string{}
	for key, hardware := range all {
		text, ok := bootable(hardware)
		if !ok || m.running[key] != nil {
			continue
		}
		booted, err := m.boot(ctx, hardware, text)
		if err != nil {
			done = false
			problems[key] = err.Error()
			if m.problems[key] != err.Error() {
				klog.InfoS("Machine cannot join yet", "hardware", key, "reason", err.Error())
			}
			continue
		}
		klog.InfoS("Machine joined", "hardware", key, "node", booted.node)
		m.running[key] = booted
	}
	m.problems = problems
	return done
}

// Returns the user data of a Hardware that boots its disk.
func bootable(hardware *unstructured.Unstructured) (string, bool) {
	if hardware == nil || hardware.GetAnnotations()[provisioned] == "" {
		return "", false
	}
	text, _, _ := unstructured.NestedString(hardware.Object, "spec", "userData")
	return text, text != ""
}

// Runs the user data of a machine, as cloud-init does.
func (m *machines) boot(
	ctx context.Context, hardware *unstructured.Unstructured, text string,
) (*machine, error) {
	data, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid user data: %w", err)
	}
	version, err := os.ReadFile(filepath.Join(m.disks, hardware.GetName()))
	if err != nil {
		return nil, fmt.Errorf("the disk is empty: %w", err)
	}
	node := node{
		name:         hostname(hardware),
		providerID:   data.providerID,
		version:      strings.TrimSpace(string(version)),
		controlPlane: data.init != nil || data.controlPlane,
	}
	cluster, err := m.clusters.find(ctx, data)
	if err != nil {
		return nil, err
	}
	if err := cluster.run(ctx, data, node); err != nil {
		return nil, err
	}
	return &machine{cluster, node.name, text, node.controlPlane}, nil
}

func (m *machine) stop(ctx context.Context) error {
	if !m.controlPlane {
		return nil
	}
	return m.cluster.removeMember(ctx, m.node)
}

// Returns the host name that the DHCP server sends.
func hostname(hardware *unstructured.Unstructured) string {
	interfaces, _, _ := unstructured.NestedSlice(hardware.Object, "spec", "interfaces")
	for _, one := range interfaces {
		if fields, ok := one.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(fields, "dhcp", "hostname")
			if name != "" {
				return name
			}
		}
	}
	return hardware.GetName()
}
