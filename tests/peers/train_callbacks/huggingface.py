# SPDX-License-Identifier: MIT
"""Two epochs of a Hugging Face Trainer with a checkpoint at the end (`first`), or one more from there (`second`)."""
import sys

import torch
from transformers import Trainer, TrainingArguments

from wattgov.integrations.huggingface import WattgovCallback


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, labels):
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    is_first = sys.argv[1] == "first"
    torch.manual_seed(1)
    data = [{"x": torch.randn(4), "labels": i % 2} for i in range(48)]
    args = TrainingArguments(output_dir="out", num_train_epochs=2 if is_first else 3, per_device_train_batch_size=4,
                             gradient_accumulation_steps=2, evaluation_strategy="epoch", save_strategy="epoch",
                             use_cpu=True, report_to=[], disable_tqdm=True, logging_strategy="no")
    trainer = Trainer(Model(), args, train_dataset=data, eval_dataset=data[:8],
                      compute_metrics=lambda _: {"accuracy": 0.75}, callbacks=[WattgovCallback("eval_accuracy")])
    trainer.train(resume_from_checkpoint=not is_first)


main()
