"""Feel a plane: go down 3 cm in 3 s and press 5 mm into it. First, in another shell: hapticd run configs/plane.toml"""

import time

from bridge import Client

with Client() as client:
    client.lease()
    client.exchange((0.0, 0.0, 0.0))  # the tool comes to where the device is
    client.arm()
    for step in range(3000):
        render = client.exchange((0.0, 0.0, -1e-5 * step))
        if step % 200 == 0:
            print(f"{0.01 * step:5.1f} mm down   {render.force[2]:5.2f} N   {render.state_name}")
        time.sleep(client.tick_s)
