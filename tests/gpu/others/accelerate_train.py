# SPDX-License-Identifier: MIT. accelerate_train.py: accelerate around transformers' BERT: bfloat16, gradients of two batches a step.
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

set_seed(0)
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = BertForSequenceClassification(BertConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4,
                                                 intermediate_size=1024, vocab_size=4096))
rows = [{"input_ids": torch.randint(0, 4096, (64,)), "attention_mask": torch.ones(64, dtype=torch.long), "labels": torch.tensor(i % 2)}
        for i in range(16 * 20)]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, DataLoader(rows, batch_size=16), scheduler)
model.train()
done = 0
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            done += 1
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
accelerator.wait_for_everyone()
torch.cuda.synchronize()
print(f"steps={done}")
