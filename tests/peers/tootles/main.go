// Tootles, Tinkerbell's metadata service, with Hardware from a file instead of Kubernetes.
// Handlers, conversion and routes are Tinkerbell's own.
//
//	tootles ADDRESS:PORT HARDWARE.json PROXIES
//
// HARDWARE.json is a list as kubectl accepts it. PROXIES is the network of the trusted proxies,
// whose X-Forwarded-For headers are used.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	v1alpha1 "github.com/tinkerbell/tinkerbell/api/v1alpha1/tinkerbell"
	"github.com/tinkerbell/tinkerbell/pkg/data"
	"github.com/tinkerbell/tinkerbell/pkg/xff"
	"github.com/tinkerbell/tinkerbell/tootles"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hardware has the objects of all machines, and answers the same queries as Tinkerbell's own
// backend.
type hardware []v1alpha1.Hardware

// notFound has the methods by which callers recognize the backend's error for a missing object.
type notFound struct{}

func (notFound) Error() string  { return "hardware not found" }
func (notFound) NotFound() bool { return true }
func (notFound) Status() metav1.Status {
	return metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
}

func (all hardware) FilterHardware(
	_ context.Context, by data.HardwareFilter,
) (*v1alpha1.Hardware, error) {
	for i := range all {
		if matches(&all[i], by) {
			return &all[i], nil
		}
	}
	return nil, notFound{}
}

func matches(one *v1alpha1.Hardware, by data.HardwareFilter) bool {
	if by.ByInstanceID != "" {
		metadata := one.Spec.Metadata
		return metadata != nil && metadata.Instance != nil && metadata.Instance.ID == by.ByInstanceID
	}
	for _, it := range one.Spec.Interfaces {
		if it.DHCP != nil && it.DHCP.IP != nil && it.DHCP.IP.Address == by.ByIPAddress {
			return true
		}
	}
	return false
}

func serve(address, file, proxies string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list v1alpha1.HardwareList
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	config := tootles.NewConfig(tootles.Config{InstanceEndpoint: true})
	config.SetBackendFromFilterer(hardware(list.Items))
	// The patterns of cmd/tinkerbell/http.go.
	routes := http.NewServeMux()
	tree := config.EC2MetadataHandler()
	routes.Handle("/2009-04-04/", tree)
	routes.Handle("/tootles/", tree)
	routes.Handle("/metadata", config.HackMetadataHandler())
	trust, err := xff.NewXFF(xff.Options{AllowedSubnets: []string{proxies}})
	if err != nil {
		return err
	}
	return http.ListenAndServe(address, trust.Handler(routes))
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: tootles ADDRESS:PORT HARDWARE.json PROXIES")
	}
	log.Fatal(serve(os.Args[1], os.Args[2], os.Args[3]))
}
