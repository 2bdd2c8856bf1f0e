module pattern-oracle

go 1.26.3

require quamina.net/go/quamina v1.5.2-0.20250207005432-0526acc321a8
