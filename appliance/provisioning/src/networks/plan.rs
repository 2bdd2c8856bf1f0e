//! Conversion of a network plan to settings of the DHCP service, and check if DHCP may be served.

use api::network::{Mode, NetworkPlan, SubnetPlan};
use dhcp::{Prefix, Range, Subnet};
use stdx::MacAddr;

/// Properties of a network interface for the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nic {
    /// Hardware address of the interface.
    pub mac: MacAddr,
    /// True if a default route uses the interface.
    pub default_route: bool,
}

/// Returns the mode of the DHCP service; `None` for [`Mode::Off`].
pub fn service_mode(mode: Mode) -> Option<dhcp::Mode> {
    match mode {
        Mode::Off => None,
        Mode::Proxy => Some(dhcp::Mode::Proxy),
        Mode::Reserved => Some(dhcp::Mode::Reserved),
        Mode::Pool => Some(dhcp::Mode::Pool),
    }
}

/// Returns the settings of the DHCP service for a plan. Address conflict checks are always on.
pub fn service_config(plan: &NetworkPlan, mode: dhcp::Mode) -> dhcp::Config {
    let mut config = dhcp::Config::new(plan.interface.clone(), plan.address);
    config.mode = mode;
    config.enroll = plan.enroll;
    config.subnets = plan.subnets.iter().filter_map(subnet).collect();
    config.conflict_checks = true;
    config.syslog = Some(plan.address);
    config.binaries.clone_from(&plan.loaders);
    config.router_advertisements = plan.router_advertisements;
    config
}

fn subnet(plan: &SubnetPlan) -> Option<Subnet> {
    let prefix: Prefix = plan.to_string().parse().ok()?;
    let range =
        |range: &std::ops::RangeInclusive<_>| Range { first: *range.start(), last: *range.end() };
    Some(Subnet {
        ranges: plan.ranges.iter().map(range).collect(),
        gateway: plan.gateway,
        name_servers: plan.name_servers.clone(),
        time_servers: plan.time_servers.clone(),
        domain_name: plan.domain.clone(),
        lease_secs: plan.lease_secs,
        ..Subnet::new(prefix)
    })
}

/// Returns true if two plans differ in a setting that a running service cannot change.
pub fn needs_restart(old: &NetworkPlan, new: &NetworkPlan) -> bool {
    let fixed = |plan: &NetworkPlan| {
        (plan.interface.clone(), plan.address, plan.mode, plan.router_advertisements, plan.ipv6)
    };
    fixed(old) != fixed(new)
}

/// Returns the reason why DHCP must not be served on the interface; `None` if allowed (NW-4).
pub fn refusal(plan: &NetworkPlan, nic: Nic) -> Option<String> {
    let [.., high, low] = nic.mac.0;
    let digits = format!("{high:02x}{low:02x}");
    if plan.mode != Mode::Pool || !nic.default_route || plan.confirm == digits {
        return None;
    }
    Some(format!(
        "the default route uses {0}, so {0} is probably on your own network; to give addresses \
         there anyway, set spec.confirm to the last four digits of the MAC address of {0}, {1}",
        plan.interface, nic.mac
    ))
}

/// Formats the pools for a person: `10.77.0.100-10.77.0.199, 100 addresses, gateway 10.77.0.1`.
pub fn pools(plan: &NetworkPlan) -> String {
    let with_pool = plan.subnets.iter().filter(|subnet| !subnet.ranges.is_empty());
    let described = with_pool.map(|subnet| {
        let ranges: Vec<String> = subnet
            .ranges
            .iter()
            .map(|range| format!("{}-{}", range.start(), range.end()))
            .collect();
        let gateway = subnet
            .gateway
            .map_or_else(|| "no gateway is announced".to_owned(), |it| format!("gateway {it}"));
        format!("{}, {} addresses, {gateway}", ranges.join(", "), subnet.addresses())
    });
    described.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use api::network::{Mode, NetworkPlan, NetworkSpec};
    use serde_json::json;
    use stdx::MacAddr;

    use super::{Nic, needs_restart, pools, refusal, service_config, service_mode};

    fn plan(mode: &str) -> NetworkPlan {
        let spec: NetworkSpec = serde_json::from_value(json!({
            "interface": "eth1", "address": "10.77.0.1/24", "mode": mode,
            "pool": ["10.77.0.100-10.77.0.200"], "leaseSeconds": 600,
            "relayed": [{ "subnet": "10.78.0.0/24", "gateway": "10.78.0.1" }],
        }))
        .unwrap();
        spec.plan().unwrap()
    }

    #[test]
    fn a_plan_as_the_service_takes_it() {
        let plan = plan("pool");
        let config = service_config(&plan, service_mode(plan.mode).unwrap());
        assert_eq!(config.mistakes(), Vec::<String>::new());
        assert_eq!(config.subnets.len(), 2);
        assert_eq!(config.subnets[0].ranges[0].size(), 101);
        assert_eq!(config.subnets[0].lease_secs, 600);
        assert_eq!(config.syslog, Some([10, 77, 0, 1].into()));
        assert_eq!(service_mode(Mode::Off), None);
        assert_eq!(pools(&plan), "10.77.0.100-10.77.0.200, 101 addresses, no gateway is announced");
    }

    #[test]
    fn a_pool_on_the_way_out_wants_to_be_confirmed() {
        let nic = |default_route| Nic { mac: MacAddr([2, 0, 0, 0, 0xab, 1]), default_route };
        assert_eq!(refusal(&plan("pool"), nic(false)), None);
        assert_eq!(refusal(&plan("reserved"), nic(true)), None);
        let why = refusal(&plan("pool"), nic(true)).unwrap();
        assert!(why.contains("02:00:00:00:ab:01"), "{why}");
        let confirmed = NetworkPlan { confirm: "ab01".into(), ..plan("pool") };
        assert_eq!(refusal(&confirmed, nic(true)), None);
        assert!(
            refusal(&NetworkPlan { confirm: "ab02".into(), ..plan("pool") }, nic(true)).is_some()
        );
    }

    #[test]
    fn pools_change_while_serving_and_modes_do_not() {
        let mut other = plan("pool");
        other.subnets[0].ranges.clear();
        assert!(!needs_restart(&plan("pool"), &other));
        assert!(needs_restart(&plan("pool"), &plan("reserved")));
    }
}
