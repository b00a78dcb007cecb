"""From mechanics to touch: coupling, limits, engagement, devices and hands. Knows no socket, file or clock."""
