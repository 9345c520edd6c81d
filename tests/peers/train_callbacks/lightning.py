# SPDX-License-Identifier: MIT
"""Two epochs of Lightning: as `lightning` (`first`) or as `pytorch_lightning` (`second`)."""
import os
import sys

# This folder has a file that is called like the package.
sys.path = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))]

import torch  # noqa: E402

torch.__version__ = "1.13.0"  # Debian's calls itself 1.13.0a0, which Lightning takes for an older one

if sys.argv[1] == "first":
    import lightning as library  # noqa: E402
else:
    import pytorch_lightning as library  # noqa: E402

from wattgov.integrations.lightning import WattgovCallback  # noqa: E402


class Module(library.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        """Torch 1.13's part of it does not import under Python 3.11."""

    def training_step(self, batch, _):
        return self.layer(batch[0]).pow(2).mean()

    def validation_step(self, _batch, _index):
        self.log("val_acc", 0.5 + self.current_epoch / 8)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    data = torch.utils.data.TensorDataset(torch.randn(48, 4))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    trainer = library.Trainer(max_epochs=2, callbacks=[WattgovCallback("val_acc", batch_size=4)], logger=False,
                              enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                              accelerator="cpu")
    trainer.fit(Module(), loader, loader)


main()
